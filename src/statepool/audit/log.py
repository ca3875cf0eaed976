"""Intake: a log of any kind as one Ibis table of flat rows, or one question that the caller can answer.

Files and frames are read by duckdb; a database is asked where the data lies. CSV is read as text and converted value
by value, so that one odd entry spoils its own row only. Columns of the flat table:

action, state, ticket, context             text; several context columns are joined by `JOINT`
outcome, propensity, held                  numbers; a blank outcome is null, or what `missing` says
unreadable                                 there is an outcome, and it is not a number
used                                       the row has a decision time, if the log has them, and no unreadable outcome
decided, resolved                          numbers as they are, dates as seconds since 1970 (UTC)

What has to be known first is asked, one question at a time: a ValueError names the option that answers it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ibis
import numpy as np
from ibis.expr.types import Table

from statepool.checks import unknown_name
from statepool.extras import explained
from statepool.learners import name_of

NAMES: dict[str, list[str]] = {
    part: names.split()
    for part, names in {
        "action": "action arm item item_id sku product product_id variant variant_id choice treatment creative offer "
        "campaign",
        "state": "state intermediate signal engagement funnel_stage funnel_step stage step depth funnel",
        "outcome": "loss outcome reward cost converted conversion is_converted purchase purchased bought revenue sales "
        "profit margin clicked returned churned refunded success y amount order_value order_total basket_value gmv "
        "turnover income spend value delay",
        "decided": "decided_at decided decision_time time timestamp ts event_time shown_at served_at created_at "
        "datetime date",
        "resolved": "resolved_at resolved outcome_time converted_at conversion_time purchased_at purchase_time "
        "bought_at ordered_at outcome_at",
        "propensity": "propensity probability p_action pscore prob",
        "ticket": "ticket ticket_id decision_id impression_id event_id",
        "holdout": "is_holdout held holdout held_out",
    }.items()
}
"""Column names that are tried when none is given; case, blanks, underscores and a unit at the end do not matter."""

LIKELY_IDS = ("visit_id", "request_id", "view_id", "row_id", "uuid", "id")
"""Columns whose repeated values are reported, though rows are not dropped for them."""
NEEDED, TIMES = ("action", "state", "outcome"), ("decided", "resolved")
JOINT = "\x1f"
"""Joins the values of several context columns: a character that values do not have."""

REWARDS = (
    "reward converted conversion conversions purchase purchases purchased bought order orders ordered revenue sales "
    "sale sold profit margin income gmv clicked click clicks signup subscribed retained success won value spend amount "
    "turnover basket paid"
)
LOSSES = (
    "loss losses cost costs returned return returns refunded refund churned churn bounced bounce cancelled canceled "
    "failed failure complaint complaints late lateness delay delayed latency wait waiting error unsubscribed regret"
)
"""Words in an outcome's name from which it is clear whether more of it is better."""

UNREADABLE = 0.05
"""Share of unreadable outcomes from which the audit asks."""
ENGINES = ("ibis", "duckdb", "_duckdb", "psycopg", "sqlglot", "pyspark")
"""Packages whose errors are about the log."""
MOST_FOR_IDS, MEMORY, MOST_THREADS = 2_000_000, "1GB", 8

CURRENCY = r"€|\$|£|¥|₹|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|kr|zł"
FORMS = {
    "with a decimal point": (r"^[-+]?([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.[0-9]+)?$", ","),
    "with a decimal comma": (r"^[-+]?([0-9]{1,3}([. ][0-9]{3})+|[0-9]+)(,[0-9]+)?$", r"[. ]"),
}
"""Forms of amounts, after currency signs are removed: the pattern, and what separates thousands."""
PLAIN = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
UNIT = rf"[\s_-]*[\[(]([^\])]*)[\])]\s*$|[\s_-]+({CURRENCY}|cents?|percent|points|seconds|minutes|min|hours|days)\s*$"
"""A unit at the end of a column's name, in brackets or without."""
DATED, ZONE = "^[0-9]{4}-[0-9]{2}", r"(Z|UTC|[+-][0-9][0-9]:?[0-9]{0,2})$"


@dataclass(frozen=True)
class Columns:
    """The column of each part, None where the log has none; `direction` says how `is_reward` is known."""

    action: str
    state: str
    outcome: str
    decided: str | None
    resolved: str | None
    propensity: str | None
    ticket: str | None
    holdout: str | None
    context: tuple[str, ...]
    is_reward: bool
    direction: str

    @property
    def named(self) -> set[str]:
        """Columns of the log that have a part."""
        return {getattr(self, part) for part in NAMES} | set(self.context)


@dataclass(frozen=True)
class Source:
    """Rows as they are found. `unread`: lines of JSON that cannot be read; `window` is that of a pool, in seconds."""

    table: Table
    name: str
    unread: int = 0
    runs: str | None = None
    """The learner of the pool whose rows these are."""
    window: float | None = None
    missing: float | str | None = None
    """What a blank outcome means: as given, or the default of the pool whose rows these are."""


@dataclass(frozen=True, kw_only=True)
class Log(Source):
    """An open log of flat rows. `seconds`: times are dates; `notes`: what is odd."""

    columns: Columns
    seconds: bool
    repeated: int
    notes: tuple[str, ...]

    def unread_lines(self) -> int:
        """Lines that could not be read; those of a CSV file are known once it has been counted."""
        with suppress(Exception):  # there is no such table unless duckdb read a CSV file
            rejected = self.table.get_backend().table("reject_errors")
            # Every reading of the file lists them again, once for each value that is wrong.
            return self.unread + int(rejected.select("file_id", "line").distinct().count().to_pyarrow().as_py())
        return self.unread


@contextmanager
def open_log(
    source: Any, given: Mapping[str, str | Sequence[str] | None], reward: bool | None = None,
    missing: float | str | None = None, table: str | None = None, window_known: bool = False,
) -> Iterator[Log]:  # fmt: skip
    """A log (see `audit_log` for what it may be), closed at the end; asks what has to be known.

    `given` names columns by part; `missing` is what a blank outcome means, a number or "drop". What an engine cannot
    do is one sentence.
    """
    text = str(source) if isinstance(source, str | os.PathLike) else ""
    text = f"sqlite:///{text}" if text.lower().endswith((".db", ".sqlite")) and "://" not in text else text
    with ExitStack() as opened:
        try:
            read = _read(source, text, table, opened)
            dates = _date_columns(read.table)
            columns = _find_columns(read.table, given, reward, dates)
            if not window_known and read.window is None:
                _ask_times(read.table, columns, dates)
            read = read if missing is None else replace(read, missing=missing)
            log = _flatten(read, columns, dates)
        except ValueError:
            raise
        except Exception as error:  # engines raise errors of many classes
            shown = hide_password(text) or "log"
            raise ValueError(f"{shown}: cannot be read as a log ({first_line(error)})") from None
        try:
            yield log
        except Exception as error:
            if str(error) == "Query interrupted":  # duckdb's answer to Ctrl-C
                raise KeyboardInterrupt from None
            if type(error).__module__.partition(".")[0] not in ENGINES:
                raise
            raise ValueError(f"{read.name}: cannot be counted ({first_line(error)})") from None


def first_line(error: Exception) -> str:
    """What an engine says went wrong, in one line."""
    lines = str(error).strip().splitlines()
    return hide_password(lines[0][:200]) if lines else type(error).__name__


def hide_password(address: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", address)


def _read(source: Any, text: str, table: str | None, opened: ExitStack) -> Source:
    """The rows of a source; `text` is the source if it is an address or a path."""
    if isinstance(source, Table):
        return Source(source, "Ibis table")
    if table is None and text.startswith(("sqlite:///", "postgresql://")):
        try:
            return _read_pool(_duckdb(opened), text)
        except ValueError as error:
            raise ValueError(f"{error}, or a table with --table") from None
    if "://" in text:
        return _read_database(text, table, opened)
    if table is not None:
        raise ValueError(f"table: is {table!r}, expected none unless the log is a database's address")
    if text:
        found, unread = _read_files(_duckdb(opened), Path(text))
        return Source(found, Path(text).name, unread)
    if not hasattr(source, "shape"):
        given = repr(source) if isinstance(source, str) else type(source).__name__
        raise ValueError(f"log: is {given}, expected the path of a file, or a pandas or polars frame")
    return Source(_read_frame(_duckdb(opened), source), f"{type(source).__module__.partition('.')[0]} frame")


def _duckdb(opened: ExitStack) -> Any:
    # What does not fit is spilled to the system's temporary folder, not to the caller's.
    engine = ibis.duckdb.connect(
        memory_limit=MEMORY, threads=min(os.cpu_count() or 1, MOST_THREADS), preserve_insertion_order=False,
        temp_directory=str(Path(tempfile.gettempdir()) / "statepool-audit"),
    )  # fmt: skip
    opened.callback(engine.disconnect)
    engine.raw_sql("SET TimeZone = 'UTC'")
    return engine


def _read_files(engine: Any, path: Path) -> tuple[Table, int]:
    """A file, or those of a folder or pattern in order of their names, all of one kind; lines that cannot be read."""
    found = [path] if path.is_file() else sorted(path.parent.glob(path.name)) if "*" in path.name else []
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
    files = [file for file in found if file.stat().st_size]
    if not files:
        wrong = "is empty" if found else "holds no file" if path.is_dir() else "is not a file"
        raise ValueError(f"{path}: {wrong}, expected a log with a row for each decision")
    endings = sorted({"".join(file.suffixes[-2:] if file.suffix == ".gz" else [file.suffix]) for file in files})
    if len(endings) > 1:
        raise ValueError(f"{path}: holds files ending in {' and '.join(endings)}, expected all of one kind")
    kind, names = endings[0].lower().removesuffix(".gz"), [str(file) for file in files]
    if kind == ".parquet":
        return engine.read_parquet(names), 0
    if kind in (".jsonl", ".ndjson", ".json"):
        return _read_json_lines(engine, names)
    if kind not in (".csv", ".tsv"):
        raise ValueError(f"{files[0]}: ends in {kind!r}, expected .csv, .tsv, .parquet, .jsonl, .ndjson, .json or .db")
    options = {"all_varchar": True, "header": True, "null_padding": True, "store_rejects": True}
    table = engine.read_csv(names, **options)
    try:
        table.count().to_pyarrow()
    except Exception as error:
        # Line breaks inside quotes beside short lines: duckdb reads both in one thread only.
        if "parallel=false" not in str(error):
            raise
        table = engine.read_csv(names, parallel=False, **options)
    return table, 0


def _read_json_lines(engine: Any, names: list[str]) -> tuple[Table, int]:
    """Values as text, like those of CSV, and how many lines are no JSON."""
    options = {"format": "newline_delimited", "records": "false", "ignore_errors": True}
    lines = engine.read_json(names, columns={"line": "JSON"}, **options)
    keys: dict[str, None] = {}
    for row in lines.limit(20_000).to_pyarrow()["line"].to_pylist():
        found = json.loads(row or "null")
        keys.update(dict.fromkeys(found) if isinstance(found, dict) else {})
    if not keys:
        raise ValueError(f"{names[0]}: holds no JSON object, expected one on each line")
    # Text is unwrapped, numbers and truth values are taken as they are written.
    values = {key: lines.line[key].str.coalesce(lines.line[key].cast("string")).nullif("null") for key in keys}
    unread = int(lines.line.isnull().sum().to_pyarrow().as_py())
    return lines.filter(lines.line.notnull()).select(**values), unread


def _read_frame(engine: Any, frame: Any) -> Table:
    """A pandas, polars or Arrow table, copied into duckdb."""
    import pyarrow as pa

    if hasattr(frame, "select_dtypes"):  # pandas: objects may mix numbers and text
        frame = frame.rename(columns=str)
        mixed = {name: frame[name].astype("string") for name, kind in frame.dtypes.items() if str(kind) == "object"}
        frame = pa.Table.from_pandas(frame.assign(**mixed), preserve_index=False)
    elif hasattr(frame, "to_arrow"):
        frame = frame.to_arrow()
    for i, column in enumerate(frame.schema):
        if pa.types.is_timestamp(column.type):  # nanoseconds are more than engines keep
            moments = frame.column(i).cast(pa.timestamp("us", column.type.tz), safe=False)
            frame = frame.set_column(i, column.name, moments)
    engine.con.register("decisions", frame)
    return engine.table("decisions")


def _read_database(address: str, table: str | None, opened: ExitStack) -> Source:
    if address.startswith("sqlite:///") and not Path(address.removeprefix("sqlite:///")).is_file():
        raise ValueError(f"{address}: is not a file, expected a log")
    try:
        engine = ibis.connect(address)
    except ValueError:
        raise ValueError(f"log: is {hide_password(address)!r}, expected a file, or a URL that Ibis knows") from None
    opened.callback(engine.disconnect)
    if table is None:
        raise ValueError("table: is not given, expected --table, a table of the database or a query in parentheses")
    if table.lstrip().startswith("("):
        return Source(engine.sql(table.strip()[1:-1]), "query")
    schema, _, name = table.rpartition(".")
    found = engine.table(name, database=schema or None)
    # SQLite knows no dates: its tables are copied into duckdb.
    return Source(found if engine.name != "sqlite" else _read_frame(_duckdb(opened), found.to_pyarrow()), table)


def _read_pool(engine: Any, address: str) -> Source:
    """A pool's decisions copied into duckdb."""
    import pyarrow as pa

    with open_pool(address) as pool:
        rows, settings, name = list(pool.rows()), pool.settings, pool.definition.name
        default, runs = pool.definition.scale.default(settings), name_of(type(pool.definition.learner))
    if not rows:
        raise ValueError(f"{hide_password(address)}: has no rows, expected one for each decision")
    for row in rows:
        row |= {part: None if row[part] is None else str(row[part]) for part in ("action", "state", "context")}
        # A default that the window brought is no event.
        row["resolved_at"] = None if row["expired"] else row["resolved_at"]
    silence = None if settings.window is None else default.reported if default.is_reward else default.loss
    return Source(_read_frame(engine, pa.Table.from_pylist(rows)), name, 0, runs, settings.window, silence)


@contextmanager
def open_pool(address: str) -> Iterator[Any]:
    """The pool at an address such as `sqlite:///pool.db#home`, to read; the name may be left out if there is one."""
    try:
        from statepool.live import Database, Pool
    except ImportError as error:
        raise explained("pool", error) from None
    url, _, name = address.partition("#")
    with closing(Database(url, read_only=True)) as database:
        names = database.pool_names()
        name = name or (names[0] if len(names) == 1 else "")
        if name not in names:
            held = ", ".join(names) or "none"
            raise ValueError(f"{hide_password(url)}: holds the pools {held}, expected the name of one after a #")
        with Pool.open(database, name) as pool:
            yield pool


def _find_columns(
    raw: Table, given: Mapping[str, str | Sequence[str] | None], reward: bool | None, dates: list[str]
) -> Columns:
    present = list(raw.columns)
    if not given.get("outcome") and {"reward", "loss", "expired"} <= set(present):  # a pool's rows have both
        present.remove("loss" if raw.reward.count().to_pyarrow().as_py() else "reward")
    found: dict[str, str | None] = {}
    named_context = given.get("context")
    context = (named_context,) if isinstance(named_context, str) else tuple(named_context or ())
    named = {given.get(part) for part in NAMES.keys() - NEEDED}
    for part, names in NAMES.items():
        taken = named | set(found.values()) | (set() if part in NEEDED else set(context))
        free = [column for column in present if column not in taken and (part in TIMES or column not in dates)]
        # A name without a unit comes before one with.
        known = {_bare(split_unit(column)[0]): column for column in free} | {_bare(column): column for column in free}
        found[part] = given.get(part) or next((known[_bare(name)] for name in names if _bare(name) in known), None)  # type: ignore[assignment]
    used = [*found.items(), *(("context", name) for name in context)]
    for i, (part, column) in enumerate(used):
        if column is not None and column not in present:
            raise ValueError(unknown_name(f"{part} column", str(column), present))
        other = next((earlier for earlier, name in used[:i] if column is not None and name == column), None)
        if other is not None and (part in NEEDED or part == "context"):
            raise ValueError(f"{part}: is column {column!r}, which is the {other} too, expected another")
    for part in NEEDED:
        if found[part] is None:
            left = ", ".join(column for column in present if column not in {*found.values(), *dates})
            wanted = f"one of {left} to be named with --{part}" if left else "a log with more columns"
            tried = " or ".join(NAMES[part][:5])
            raise ValueError(f"{part}: no column is called {tried} or the like; expected {wanted}")
    parts = re.sub(r"([a-z])([A-Z])", r"\1_\2", str(found["outcome"])).lower()
    words = set(re.split(r"[^a-z]+", parts))
    good, bad = (bool(words & set(known.split())) for known in (REWARDS, LOSSES))
    is_reward, direction = (good, "by its name") if reward is None else (reward, "as given")
    if reward is None and good == bad:
        raise ValueError(
            f"outcome: the name {found['outcome']!r} does not say whether more is better, expected --reward if more is "
            "better, --loss if more is worse"
        )
    return Columns(**found, context=context, is_reward=is_reward, direction=direction)  # type: ignore[arg-type]


def _bare(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def split_unit(name: str) -> tuple[str, str]:
    """A column's name without the unit at its end, and the unit; codes of currencies in capitals."""
    found = re.search(UNIT, name, re.IGNORECASE)
    unit = "" if found is None else (found[1] or found[2] or "").strip()
    return re.sub(UNIT, "", name, flags=re.IGNORECASE), unit.upper() if re.fullmatch(CURRENCY, unit.upper()) else unit


def _date_columns(raw: Table) -> list[str]:
    """Columns of dates: by type, or for text by what more of it can be read as."""
    found = [name for name, kind in raw.schema().items() if kind.is_timestamp() or kind.is_date()]
    texts = [name for name, kind in raw.schema().items() if kind.is_string()]
    if not texts:
        return found
    head, wanted = raw.select(texts).limit(10_000), dict[str, Any]()
    for i, name in enumerate(texts):
        text = head[name].strip()
        wanted |= {f"number{i}": _parse(text).count(), f"date{i}": text.re_search(DATED).sum()}
    (counts,) = head.aggregate(**wanted).to_pyarrow().to_pylist()
    return found + [name for i, name in enumerate(texts) if (counts[f"date{i}"] or 0) > counts[f"number{i}"]]


def _ask_times(raw: Table, columns: Columns, dates: list[str]) -> None:
    """Ask about columns of dates that have no part, if the window is not known without them."""
    spare = [name for name in dates if name not in columns.named]
    if not spare or (columns.decided and columns.resolved):
        return
    read = {name: _time(raw[name], True) for name in (columns.decided, *spare) if name}
    head = raw.select(**read).limit(10_000).to_pyarrow()
    times = {name: head[name].cast("float64").to_numpy() for name in read}
    # Every decision has a time, an outcome has one where something happened.
    known = {name: int(np.isfinite(values).sum()) for name, values in times.items()}
    decided = columns.decided or max(spare, key=lambda name: known[name])
    later = [name for name in spare if name != decided and (times[name] > times[decided]).sum() > known[name] / 2]
    start = "" if columns.decided or known[decided] <= len(head) / 2 else f"--decided {shlex.quote(decided)} "
    resolved = "" if columns.resolved or not later else min(later, key=lambda name: known[name])
    come = f"--resolved {shlex.quote(resolved)} " if resolved else ""
    parts = [f"{decided!r} the time of decision"] * bool(start) + [f"{resolved!r} the time of outcome"] * bool(resolved)
    if parts:
        raise ValueError(
            f"window: is {' and '.join(parts)}? {start}{come}if so, {start}--window 14d if outcomes are final after 14 "
            "days, --window 0 if they always come"
        )


def _flatten(read: Source, columns: Columns, dates: list[str]) -> Log:
    raw, notes, missing = read.table, list[str](), read.missing
    number, present = _read_outcome(raw, columns, notes)
    seconds = (columns.decided or columns.resolved) in dates
    if seconds:
        _note_zones(raw, columns, notes)

    def part(column: str | None, read: Any, kind: str) -> Any:
        return ibis.null(kind) if column is None else read(raw[column])

    context = ibis.null("string")
    for i, label in enumerate(columns.context):
        text = raw[label].cast("string").strip().nullif("")
        context = text if i == 0 else context + JOINT + text
    times = {time: part(getattr(columns, time), lambda c: _time(c, seconds), "float64") for time in TIMES}
    timed = times["decided"].notnull() if columns.decided else ibis.literal(True)
    unreadable = present & number.isnull()
    flat = raw.select(
        action=raw[columns.action].cast("string"),
        state=raw[columns.state].cast("string"),
        outcome=ibis.ifelse(present, number, float(missing)) if isinstance(missing, float) else number,
        unreadable=unreadable,
        used=timed & ~unreadable,
        propensity=part(columns.propensity, lambda column: _number(column), "float64"),
        held=part(columns.holdout, lambda column: _number(column), "float64"),
        ticket=part(columns.ticket, lambda column: column.cast("string"), "string"),
        context=context,
        **times,
    )
    repeated = _count_repeats(flat.ticket) if columns.ticket else 0
    if repeated:  # one with an outcome if there is one, the earliest of those
        order = [flat.outcome.isnull(), flat.decided, flat.resolved, flat.action, flat.state]
        numbered = flat.mutate(copy=ibis.row_number().over(group_by=flat.ticket, order_by=order))
        flat = numbered.filter(numbered.ticket.isnull() | (numbered["copy"] == 0)).drop("copy")
    _note_ids(raw, columns, notes)
    read = replace(read, table=flat)
    return Log(**vars(read), columns=columns, seconds=seconds, repeated=repeated, notes=tuple(notes))


def _number(column: Any) -> Any:
    """A column as numbers, null where it is none; true and false are 1 and 0."""
    kind = column.type()
    if kind.is_boolean():
        return column.cast("int32").cast("float64")  # PostgreSQL casts truth values to no smaller integer
    if kind.is_numeric():
        return column.cast("float64") if kind.is_integer() else _finite(column.cast("float64"))
    if not kind.is_string():
        return ibis.null("float64")
    text = column.strip()
    word = text.lower()
    return ibis.cases((word.isin(("true", "yes", "t", "y")), 1.0), (word.isin(("false", "no", "f", "n")), 0.0),
                      else_=_parse(text))  # fmt: skip


def _parse(text: Any) -> Any:
    """Plain numbers; the cast is guarded, as engines differ in what they do with other text."""
    return _finite(ibis.ifelse(text.re_search(PLAIN), text, ibis.null("string")).cast("float64"))


def _finite(number: Any) -> Any:
    return ibis.ifelse(number.between(-1e308, 1e308), number, ibis.null("float64"))


def _read_outcome(raw: Table, columns: Columns, notes: list[str]) -> tuple[Any, Any]:
    """Expressions for the outcome as a number and for its presence; amounts with currency signs are read too."""
    column = raw[columns.outcome]
    kind, number = column.type(), _number(column)
    if not kind.is_string():
        present = column.notnull()
        if kind.is_integer():  # as it is: engines find the least and the largest of whole numbers much faster
            return column, present
        return number, (present & ~column.isnan()).fill_null(False) if kind.is_floating() else present
    text = column.strip()
    present = (text != "").fill_null(False)
    bare = text.re_replace(CURRENCY, "").strip()
    wanted = {form: (present & bare.re_search(pattern)).sum() for form, (pattern, _) in FORMS.items()}
    wanted |= {"present": present.sum(), "odd": (present & number.isnull()).sum()}
    (answer,) = raw.aggregate(**wanted).to_pyarrow().to_pylist()
    found = {key: int(value or 0) for key, value in answer.items()}
    if found["odd"] <= UNREADABLE * found["present"]:
        return number, present
    odd = raw.filter(present & number.isnull()).select(value=text).distinct().order_by("value").limit(3)
    examples = [value[:40] for value in odd.to_pyarrow()["value"].to_pylist()]
    fits = [form for form in FORMS if found[form] == found["present"]]
    if len(fits) != 1:
        ambiguous = ", which may have decimal commas or thousands" if fits else ""
        raise ValueError(
            f"outcome: {found['odd']} of {found['present']} values in {columns.outcome!r} are not numbers, for example "
            f"{', '.join(map(repr, examples))}{ambiguous}; expected plain numbers such as 41.20, or another column "
            "with --outcome"
        )
    pattern, thousands = FORMS[fits[0]]
    cleaned = bare.re_replace(thousands, "").replace(",", ".")
    readable = ibis.ifelse(bare.re_search(pattern), cleaned, ibis.null("string")).cast("float64")
    first = raw.filter(text == examples[0]).select(number=readable).limit(1).to_pyarrow()["number"][0].as_py()
    notes.append(f"{columns.outcome} is read as amounts {fits[0]}: {examples[0]} as {first:g}.")
    return readable, present


def _time(column: Any, seconds: bool) -> Any:
    kind = column.type()
    if kind.is_numeric():
        return _number(column)
    if not seconds:
        return _parse(column.cast("string").strip())
    if kind.is_timestamp() or kind.is_date():
        moment = column.cast(ibis.dtype("timestamp"))
    else:
        text = column.cast("string").strip()
        dated = ibis.ifelse(text.re_search(DATED), text, ibis.null("string"))
        zoned = ibis.dtype("timestamp('UTC')")
        duck = column.get_backend().name == "duckdb"
        moment = (dated.try_cast(zoned) if duck else dated.cast(zoned)).cast(ibis.dtype("timestamp"))
    return moment.truncate("s").epoch_seconds().cast("float64") + moment.microsecond().cast("float64") / 1e6


def _note_zones(raw: Table, columns: Columns, notes: list[str]) -> None:
    """Mixed or partly missing time zones in columns of text."""
    for name in filter(None, (getattr(columns, part) for part in TIMES)):
        if raw[name].type().is_string():
            text = raw[name].strip()
            dated = raw.filter(text.re_search("[0-9]:[0-9]")).select(zone=text.re_extract(ZONE, 1))
            counts = dated.group_by("zone").aggregate(n=dated.count()).to_pyarrow().to_pylist()
            found = {row["zone"] or "none": row["n"] for row in counts}
            if len(found) > 1:
                listed = ", ".join(f"{zone} in {found[zone]}" for zone in sorted(found, key=lambda zone: -found[zone]))
                notes.append(f"{name} has {len(found)} time zones ({listed} rows); times without one are read as UTC.")


def _count_repeats(column: Any) -> int:
    return int((column.count() - column.nunique()).to_pyarrow().as_py())


def _note_ids(raw: Table, columns: Columns, notes: list[str]) -> None:
    for name in raw.columns:
        if name.lower() in LIKELY_IDS and name not in columns.named:
            total = int(raw.count().to_pyarrow().as_py())
            repeated = _count_repeats(raw[name]) if total <= MOST_FOR_IDS else 0
            if 0 < repeated <= 0.5 * total:
                notes.append(f"{repeated} rows repeat a {name} and were kept; --ticket {name} keeps one row of each.")
