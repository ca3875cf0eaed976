"""The tables of live pools, the same on SQLite and PostgreSQL.

Rows are the truth. They are written once and read with SQL; the exceptions are named here:

    decisions     never updated, except to erase a person
    reports       `learned_in` is set once, by the version that took the report in (0: never, its decision was erased);
                  `due` is set to infinity while an outcome waits for its state
    versions      `state` is set to NULL when a later version is there, except in every 1000th and where replay starts
    pools         `revision` with each change of the catalogue or the settings, `expired_to` with each expiry

Times are seconds since 1970 (or whatever the pool's `clock` counts). Labels are JSON, so that text, numbers and tuples
stay apart; the view `decision_log` shows text labels without their quotes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

SCHEMA = 1
"""The number of this layout; a database with another one is refused."""
POSTGRES_SCHEMA = "statepool"

STATE, OUTCOME, EXPIRY = "state", "outcome", "expiry"
ORDER = {STATE: 0, OUTCOME: 1, EXPIRY: 2}
"""The order in which the reports of one decision are learnt."""

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A whole number of 64 bits that SQLite can number rows with."""


class Tables(NamedTuple):
    """All tables of one schema."""

    metadata: sa.MetaData
    meta: sa.Table
    pools: sa.Table
    revisions: sa.Table
    actions: sa.Table
    contexts: sa.Table
    candidate_sets: sa.Table
    versions: sa.Table
    decisions: sa.Table
    reports: sa.Table
    api_keys: sa.Table


@cache
def tables_in(schema: str | None) -> Tables:
    """The tables of a schema; None is SQLite, which has none."""
    metadata = sa.MetaData(schema=schema)

    def table(name: str, *columns: Any, **options: Any) -> sa.Table:
        return sa.Table(name, metadata, *columns, **options)

    def column(name: str, kind: Any, key: bool = False, optional: bool = False) -> sa.Column[Any]:
        return sa.Column(name, kind, primary_key=key, nullable=optional, autoincrement=False)

    text, number, small, blob = sa.Text(), sa.BigInteger(), sa.Integer(), sa.LargeBinary()
    double: sa.Double[float] = sa.Double()
    meta = table("meta", column("schema", number, key=True), column("session_secret", blob))
    pools = table(
        "pools",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", text, nullable=False, unique=True),
        column("learner", text),
        column("states", text),
        column("key", number),  # seeds the random numbers of learners that draw
        column("revision", small),
        column("expired_to", double, optional=True),  # decisions up to here were looked at for expiry
        column("replay_from", small),  # earlier versions cannot be replayed: their rows were archived
        column("created_at", double),
    )
    revisions = table(
        "revisions",
        column("pool", small, key=True), column("revision", small, key=True),
        column("version", small),  # the version that was made with it
        column("settings", text), column("at", double),
    )  # fmt: skip
    actions = table(
        "actions",
        column("pool", small, key=True), column("action", small, key=True), column("since", small, key=True),
        column("label", text), column("category", text, optional=True), column("row", blob, optional=True),
        sqlite_with_rowid=False,
    )  # fmt: skip
    contexts = table(
        "contexts",
        column("pool", small, key=True), column("context", small, key=True), column("since", small, key=True),
        column("label", text), column("actions", blob), column("rows", blob),
    )  # fmt: skip
    candidate_sets = table(
        "candidate_sets",
        column("pool", small, key=True), column("digest", blob, key=True), column("labels", text),
        column("rows", blob),
    )  # fmt: skip
    versions = table(
        "versions",
        column("pool", small, key=True), column("number", small, key=True), column("uid", blob),
        column("build", text), column("revision", small), column("round", number), column("made_at", double),
        column("impossible", number),  # states so far that the policy could not lead to and the learner cannot learn
        column("digest", blob),  # of everything that this version learnt from
        column("saved", blob), column("state", blob, optional=True),
    )  # fmt: skip
    decisions = table(
        "decisions",
        sa.Column("id", KEY, sa.Identity(), primary_key=True),
        column("pool", small), column("ticket", text, optional=True), column("round", number),
        column("version", small), column("action", small),  # -1: a candidate that is not in the catalogue
        column("probability", double), column("uniform", double), column("is_holdout", sa.Boolean()),
        column("decided_at", double), column("context", small, optional=True),
        column("candidates", blob, optional=True), column("label", text, optional=True),
        column("saved", blob, optional=True),
        sa.UniqueConstraint("pool", "ticket"), sa.Index("decisions_by_time", "pool", "decided_at"),
    )  # fmt: skip
    reports = table(
        "reports",
        column("decision", number, key=True), column("kind", text, key=True), column("pool", small),
        column("state", small, optional=True), column("loss", double, optional=True),
        column("reported", double, optional=True), column("is_reward", sa.Boolean(), optional=True),
        column("is_clipped", sa.Boolean(), optional=True), column("at", double),
        column("due", double), column("learned_in", small, optional=True),
        sqlite_with_rowid=False,
    )  # fmt: skip
    sa.Index("reports_by_version", reports.c.pool, reports.c.learned_in, reports.c.due)
    clipped = reports.c.is_clipped.is_(True)
    sa.Index("reports_out_of_bounds", reports.c.pool, sqlite_where=clipped, postgresql_where=clipped)
    api_keys = table(
        "api_keys",
        column("name", text, key=True), column("hash", text), column("role", text),
        column("pools", text, optional=True), column("created_at", double), column("expires_at", double, optional=True),
    )  # fmt: skip
    return Tables(
        metadata, meta, pools, revisions, actions, contexts, candidate_sets, versions, decisions, reports, api_keys
    )


VIEW = """CREATE VIEW {prefix}decision_log AS
SELECT p.name AS pool, d.ticket, {label} AS action, d.probability, {context} AS context, {state} AS state,
       coalesce(o.loss, e.loss) AS loss,
       CASE WHEN coalesce(o.is_reward, e.is_reward) THEN coalesce(o.reported, e.reported) END AS reward,
       {decided_at} AS decided_at, {observed_at} AS observed_at, {resolved_at} AS resolved_at,
       d.is_holdout, (o.decision IS NULL AND e.decision IS NOT NULL) AS expired, d.version
FROM {prefix}decisions d
JOIN {prefix}pools p ON p.id = d.pool
LEFT JOIN {prefix}reports s ON s.decision = d.id AND s.kind = 'state'
LEFT JOIN {prefix}reports o ON o.decision = d.id AND o.kind = 'outcome'
LEFT JOIN {prefix}reports e ON e.decision = d.id AND e.kind = 'expiry'"""

_ACTION = """coalesce(d.label, (SELECT a.label FROM {prefix}actions a
       WHERE a.pool = d.pool AND a.action = d.action ORDER BY a.since LIMIT 1))"""
_CONTEXT = """CASE WHEN d.ticket IS NOT NULL THEN (SELECT c.label FROM {prefix}contexts c
       WHERE c.pool = d.pool AND c.context = d.context ORDER BY c.since LIMIT 1) END"""


def view_of(dialect: str, schema: str | None) -> str:
    """The statement that makes the view `decision_log`."""
    prefix = "" if schema is None else f"{schema}."
    action, context = _ACTION.format(prefix=prefix), _CONTEXT.format(prefix=prefix)
    times = {"decided_at": "d.decided_at", "observed_at": "s.at", "resolved_at": "coalesce(o.at, e.at)"}
    if dialect == "postgresql":
        return VIEW.format(
            prefix=prefix, label=f"({action})::json #>> '{{}}'", context=f"({context})::json #>> '{{}}'",
            state="p.states::json ->> s.state::int",
            **{name: f"to_timestamp({value})" for name, value in times.items()},
        )  # fmt: skip
    return VIEW.format(
        prefix=prefix, label=f"json_extract({action}, '$')", context=f"json_extract({context}, '$')",
        state="json_extract(p.states, '$[' || s.state || ']')",
        **{name: f"strftime('%Y-%m-%dT%H:%M:%fZ', {value}, 'unixepoch')" for name, value in times.items()},
    )  # fmt: skip
