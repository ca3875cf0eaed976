"""`statepool simulate`: learners by name on a family by name, paired."""

import inspect
import json
from typing import Any

from rich.console import Console
from rich.table import Table

from statepool import families, learners
from statepool.checks import check_count, unknown_name
from statepool.commands.progress import working
from statepool.commands.tables import make_table
from statepool.comparison import compare
from statepool.frames import terminal_width
from statepool.stream import APART
from statepool.studies.statistics import standard_error


def run(
    family: str, names: list[str], delay: int, seeds: int, stream: int | None, assignments: list[str], as_json: bool
) -> None:
    """Compare, and print a table or JSON."""
    with working(f"playing {len(names)} learners on {seeds} seeds of {family}"):
        rows = compare_named(family, names, delay, seeds, stream, assignments)
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        Console(width=terminal_width()).print(comparison_table(rows, f"{family}, delay {delay}, {seeds} seeds"))


def compare_named(
    family: str, names: list[str], delay: int, seeds: int, stream: int | None, assignments: list[str]
) -> list[dict[str, Any]]:
    """One record a learner: mean regret, and the gain over the first with its paired standard error."""
    check_count(seeds, "seeds")
    check_count(delay, "delay", lowest=0)
    apart = APART if stream is None else check_count(stream, "stream", lowest=0)
    make = families.find(family)
    settings = dict(parse_setting(make, text) for text in assignments)
    arms = {name: learners.find(name)() for name in names}
    grid = compare({family: lambda seed: make(seed=seed, **settings)}, arms, [delay], range(seeds), apart)
    records = []
    for name in names:
        regrets = grid.of(family, name, delay)
        gain, error = grid.gain(family, name, over=names[0], delay=delay)
        records.append(
            {
                "learner": name, "regret": float(regrets.mean()), "se": standard_error(regrets),
                "gain": gain, "gain_se": None if seeds == 1 else error,
                "family": family, "delay": delay, "seeds": seeds,
            }
        )  # fmt: skip
    return records


def parse_setting(family: Any, text: str) -> tuple[str, Any]:
    """name=value, the name a setting of the family, the value a number or a word."""
    name, sign, value = text.partition("=")
    parameters = inspect.signature(family).parameters.values()
    known = [each.name for each in parameters if each.name != "seed" and each.kind is not each.VAR_KEYWORD]
    passes_on = any(each.kind is each.VAR_KEYWORD for each in parameters)  # and refuses what it does not know itself
    if not sign:
        raise ValueError(f"set: is {text!r}, expected name=value with a name of {', '.join(known)}")
    if name not in known and not passes_on:
        raise ValueError(unknown_name("set", name, known))
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def comparison_table(records: list[dict[str, Any]], title: str) -> Table:
    """The records for the terminal."""
    table = make_table(title, ("learner", "regret", "±", f"saved over {records[0]['learner']}", "±"))
    for record in records:
        numbers = (record["regret"], record["se"], record["gain"], record["gain_se"])
        table.add_row(record["learner"], *("" if number is None else f"{number:.1f}" for number in numbers))
    return table
