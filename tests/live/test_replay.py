"""Replay names the first version or decision that does not follow from the rows."""

import pytest
import sqlalchemy as sa

import statepool as sp
from live.places import ACTIONS, STATES, P, play

TABLES = {"reports": "decision", "decisions": "id", "versions": "number"}


def played(place, **given):
    pool = place.make(update_every=3, **given)
    play(pool, 12)
    return pool


def edit(pool, table, column, where, change):
    """Change one value behind the pool's back."""
    name = f"statepool.{table}" if pool.database.is_postgres else table
    statement = f"UPDATE {name} SET {column} = {change} WHERE pool = {pool.definition.id} AND {where}"

    def run(connection):
        assert connection.execute(sa.text(statement)).rowcount >= 1

    pool.database.write(run)


def test_untouched_rows_replay(place):
    found = played(place).replay()
    assert (found.fault, found.decisions, found.redrawn, found.versions, found.same_build) == (None, 12, 12, 9, True)


@pytest.mark.parametrize(
    ("table", "column", "change"),
    [
        ("reports", "state", "(state + 1) % 3"),
        ("reports", "loss", "1 - loss"),
        ("reports", "reported", "1 - reported"),
        ("reports", "is_reward", "NOT is_reward"),
        ("reports", "is_clipped", "NOT coalesce(is_clipped, {false})"),
        ("reports", "at", "at + 1"),
        ("reports", "learned_in", "learned_in + 1"),
        ("reports", "kind", "'expiry'"),
        ("decisions", "action", "(action + 1) % 3"),
        ("decisions", "probability", "probability / 2"),
        ("decisions", "uniform", "uniform / 2"),
        ("decisions", "is_holdout", "NOT is_holdout"),
        ("decisions", "decided_at", "decided_at - 1"),
        ("decisions", "round", "round + 1"),
        ("decisions", "version", "version + 1"),
        ("decisions", "context", "1"),
        ("versions", "round", "round + 1"),
        ("versions", "made_at", "made_at + 1"),
        ("versions", "revision", "revision + 1"),
        ("versions", "impossible", "impossible + 1"),
        ("versions", "digest", "{blob}"),
        ("versions", "saved", "{blob}"),
    ],
)
def test_a_value_edited_by_hand_is_found(place, table, column, change):
    pool = played(place)
    blob = "decode(repeat('00', 48), 'hex')" if pool.database.is_postgres else "zeroblob(48)"
    change = change.format(blob=blob, false="false" if pool.database.is_postgres else "0")
    with pool.database.read() as connection:
        rows = connection.execute(sa.select(pool.database.tables.decisions.c.id).order_by("id")).scalars().all()
    key = 5 if table == "versions" else rows[-12:][5]
    kind = "" if table != "reports" else " AND kind = 'state'" if column == "state" else " AND kind = 'outcome'"
    edit(pool, table, column, f"{TABLES[table]} = {key}{kind}", change)
    fault = pool.replay().fault
    assert fault is not None
    assert "version" in fault or f"decision {key}" in fault


def test_an_edited_state_of_the_latest_version_is_found(place):
    pool = played(place)
    latest = pool.status().version
    size = len(pool._version.state)
    blob = f"decode(repeat('01', {size}), 'hex')" if pool.database.is_postgres else f"zeroblob({size})"
    edit(pool, "versions", "state", f"number = {latest}", blob)
    assert pool.replay().fault == f"version {latest} has another state than follows from the rows"


def test_deleted_rows_are_found(place):
    for number, (table, where) in enumerate((("versions", "number = 4"), ("reports", "learned_in = 3"))):
        pool = place.make(name=f"{place.name}-{number}", update_every=3)
        play(pool, 12)
        name = f"statepool.{table}" if pool.database.is_postgres else table
        delete = sa.text(f"DELETE FROM {name} WHERE pool = {pool.definition.id} AND {where}")
        pool.database.write(lambda connection, delete=delete: connection.execute(delete).rowcount)
        assert pool.replay().fault is not None


def test_an_edited_catalogue_is_found(place):
    pool = played(place)
    blob = "decode('000000000000f03f' || repeat('00', 16), 'hex')" if pool.database.is_postgres else "zeroblob(24)"
    edit(pool, "actions", "row", "action = 0", blob)
    assert pool.replay().fault is not None


def test_numbers_of_another_build_are_compared_loosely(sqlite):
    pool = played(sqlite)
    edit(pool, "versions", "build", "number > 3", "'another'")
    found = pool.replay()
    assert (found.fault, found.same_build) == (None, False)
    edit(pool, "versions", "saved", "number = 5", "zeroblob(48)")
    assert pool.replay().fault == "version 5 has other saved statistics than follow from the rows"


def test_every_thousandth_version_and_the_latest_keep_their_state(sqlite):
    pool = sqlite.open(P=P, actions=ACTIONS, states=STATES, learner=sp.Uniform())
    with pool.database.read() as connection:
        play(pool, 3)
    pool.learn()
    versions = pool.database.tables.versions.c
    with pool.database.read() as connection:
        kept = connection.execute(sa.select(versions.number).where(versions.state.is_not(None))).scalars().all()
    assert kept == [pool.status().version]


def test_a_label_added_by_hand_is_found(place):
    pool = played(place)
    edit(pool, "decisions", "label", "is_holdout = false", "'\"mine\"'")
    assert "does not follow" in pool.replay().fault
