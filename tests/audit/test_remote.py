"""The same log in duckdb and in a real PostgreSQL: the same answer from either; and SQL for engines not at hand."""

import json
import sys
from pathlib import Path

import numpy as np
import psycopg
import pytest
from generated import generate, write_columns

sys.path.append(str(Path(__file__).parent.parent / "live"))
from postgres import Server

import statepool as sp
from statepool.audit.engines import translate
from statepool.audit.remote import RemoteTable

QUICK = {"horizon": 300, "seconds": 1e-9}  # no bracket that closes further on a faster day


@pytest.fixture(scope="module")
def server():
    running = Server("fsync=off")
    yield running.url()
    running.stop()


def fill(url, columns, name="events"):
    kinds = {"f": "double precision", "i": "bigint", "b": "boolean", "O": "text"}
    made = ", ".join(f'"{c}" {kinds[np.asarray(v).dtype.kind]}' for c, v in columns.items())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} ({made})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True):
                copy.write_row([None if value != value else value for value in row])


def documents(*audits):
    found = [json.loads(json.dumps(audit.document)) for audit in audits]
    for document in found:
        document["log"]["name"] = ""
    return found


def test_contexts_are_counted_there(server, tmp_path, monkeypatch):
    columns = log(12_000, 2)
    columns["device"] = np.array(["phone", "desk", None], dtype=object)[np.arange(12_000) % 40 % 3]
    columns["new"] = np.arange(12_000) % 7 == 0
    fill(server, columns)
    path = write_columns(columns, tmp_path / "log.parquet")
    for most in (400_000, 3_000):
        # Above, the sample is the log; below, the parts are split by the engine.
        monkeypatch.setattr("statepool.audit.sample.MOST_ROWS", most)
        monkeypatch.setattr("statepool.audit.sample.SAMPLED", 2_000)
        here = sp.audit_log(path, context=["device", "new"], **QUICK)
        there = sp.audit_log(server, table="events", context=["device", "new"], **QUICK)
        assert here.personal.contexts.names == ("desk / false", "desk / true", "phone / false", "phone / true")
        assert here.personal.contexts.blank == 3_900
        first, second = ({"P": found["P"]} | found["personalising"] for found in documents(here, there))
        for found in (first, second):
            # How far a bracket closes hangs on the time that it had.
            del found["dimension"], found["sentences"]
        assert _close(first, second)


def log(n=6_000, seed=0):
    made = generate(seed, n_actions=6, n_rows=n)
    return {
        "action": np.array([f"item {a}" for a in made.action], dtype=object), "state": made.state, "loss": made.loss,
        "decided_at": made.decided, "resolved_at": made.resolved,
    }  # fmt: skip


def test_the_same_answer_from_either(server, tmp_path):
    columns = log()
    columns["loss"][:300] = np.nan
    fill(server, columns)
    here = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), **QUICK)
    there = sp.audit_log(server, table="events", **QUICK)
    assert np.array_equal(here.rows.decided, there.rows.decided)
    first, second = documents(here, there)
    assert _close(first, second)


def _close(first, second, where=""):
    """Sums may differ in their last digits: engines add in their own order."""
    if isinstance(first, dict):
        return all(_close(first[key], second[key], f"{where}/{key}") for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(_close(a, b, where) for a, b in zip(first, second, strict=True))
    same = first == second or (isinstance(first, float) and abs(first - second) <= 1e-6 * max(abs(first), 1))
    assert same, (where, first, second)
    return True


@pytest.mark.parametrize("timed", [True, False])
def test_the_same_sample_from_either(timed, server, tmp_path, monkeypatch):
    monkeypatch.setattr("statepool.audit.sample.MOST_ROWS", 3_000)
    monkeypatch.setattr("statepool.audit.sample.SAMPLED", 1_500)
    columns = log(12_000, 1)
    if not timed:
        del columns["decided_at"], columns["resolved_at"]
    fill(server, columns)
    here = sp.audit_log(write_columns(columns, tmp_path / "log.parquet"), **QUICK)
    there = sp.audit_log(server, table="events", **QUICK)
    assert 1_200 < here.rows.action.size < 1_800
    for part in ("action", "state", "loss"):
        assert np.array_equal(np.sort(getattr(here.rows, part)), np.sort(getattr(there.rows, part)))


def test_a_query_and_a_window(server):
    fill(server, log())
    found = sp.audit_log(server, table="(SELECT * FROM events WHERE state < 5)", window=2_000, **QUICK)
    assert found.counts.n_states == 5
    assert found.maturity.window == 2_000
    assert found.counts.k.sum() < found.counts.n.sum()


def test_what_cannot_be_read_is_one_sentence(server):
    fill(server, log(400))
    with pytest.raises(ValueError, match="table: expected the log's table"):
        sp.audit_log(server)
    with pytest.raises(ValueError, match=r"table: 'nothing' cannot be read as a log"):
        sp.audit_log(server, table="nothing")
    with pytest.raises(ValueError, match=r"outcome: column 'action' is text, expected numbers"):
        sp.audit_log(
            server, table="(SELECT state, action, action AS item FROM events)", action="item", outcome="action"
        )
    with pytest.raises(ValueError, match="does not answer"):
        sp.audit_log("postgresql://nobody@127.0.0.1:1/none", table="events")


def test_any_connection_with_a_dialect(tmp_path):
    import duckdb

    connection = duckdb.connect()
    connection.register("arrays", dict(log()))
    connection.execute("CREATE TABLE events AS SELECT * FROM arrays")
    found = sp.audit_log(RemoteTable(connection, "duckdb", "events"), **QUICK)
    assert found.counts.rows == 6_000


@pytest.mark.parametrize("dialect", ["spark", "bigquery", "snowflake", "postgres"])
def test_queries_can_be_said_in_other_dialects(dialect):
    from statepool.audit.facts import _CAREFUL
    from statepool.audit.sample import _LUCK

    for query in (_CAREFUL.format(timed="true"), _LUCK):
        assert "SELECT" in translate(f"WITH rows AS (SELECT 1 AS decided), deduplicated AS (SELECT 1) {query}", dialect)
