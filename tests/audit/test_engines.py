"""The same log from a file, from duckdb's sample and from a real PostgreSQL: the same answer."""

import json
import sys
from pathlib import Path

import numpy as np
import psycopg
import pytest
from generated import write_columns
from quick import QUICK

sys.path.append(str(Path(__file__).parent.parent / "live"))
from postgres import Server

from statepool.audit import audit_log


@pytest.fixture(scope="module")
def server():
    running = Server("fsync=off")
    yield running.url()
    running.stop()


def log(n=6_000):
    rng = np.random.default_rng(4)
    action, ts = rng.integers(5, size=n), np.sort(np.round(rng.uniform(0, 4e6, n), 3)) + 1.7e9
    state = (rng.random(n) < 0.1 + 0.15 * action).astype(int)
    bought, wait = rng.random(n) < np.where(state, 0.4, 0.03), rng.exponential(2e5, n)
    seen = bought & (wait < 1e6) & (ts + wait <= ts[-1])
    return {
        "sku": np.array([f"sku {a}" for a in action], dtype=object),
        "stage": np.where(state, "cart", "view").astype(object), "revenue": np.where(seen, 20.0 + action, 0.0),
        "ts": ts,
        "purchased_at": np.where(seen, np.round(ts + wait, 3), np.nan),
        "device": np.array(["phone", "desk"], dtype=object)[rng.integers(2, size=n)], "pscore": np.full(n, 0.2),
    }  # fmt: skip


def fill(url, columns, name="events"):
    kinds = {"f": "double precision", "i": "bigint", "b": "boolean", "O": "text"}
    made = ", ".join(f'"{c}" {kinds[np.asarray(v).dtype.kind]}' for c, v in columns.items())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} ({made})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True):
                copy.write_row([None if value != value else value for value in row])


def same(first, second):
    """Equal up to the last digits: engines add in different orders."""
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        for key in first:
            same(first[key], second[key])
    elif isinstance(first, list):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            same(one, other)
    elif isinstance(first, float):
        assert first == pytest.approx(second, rel=1e-6, abs=1e-9)
    else:
        assert first == second


def documents(*audits):
    found = [json.loads(json.dumps(audit.document)) for audit in audits]
    for document in found:
        document["log"]["name"] = ""
    return found


@pytest.mark.parametrize("sampled", [pytest.param(False, marks=pytest.mark.soak), True])
def test_the_same_answer_from_postgresql(sampled, server, tmp_path, monkeypatch):
    if sampled:
        monkeypatch.setattr("statepool.audit.counts.MOST_ROWS", 4_000)
        monkeypatch.setattr("statepool.audit.counts.SAMPLED", 2_000)
    columns = log()
    fill(server, columns)
    here = audit_log(write_columns(columns, tmp_path / "log.parquet"), context="device", **QUICK)
    there = audit_log(server, table="events", context="device", **QUICK)
    same(*documents(here, there))
    query = audit_log(server, table="(SELECT * FROM events)", context="device", **QUICK)
    same(*documents(here, query))


def test_text_and_dates_in_postgresql(server):
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS texts")
        connection.execute(
            "CREATE TABLE texts AS SELECT 'sku ' || i % 3 AS sku, CASE WHEN i % 2 = 0 THEN 'cart' ELSE 'view' "
            "END AS stage, "
            "CASE WHEN i % 4 = 0 THEN '€4.50' END AS revenue, timestamptz '2026-01-01 00:00+02' + i * "
            "interval '1.5 s' AS ts "
            "FROM generate_series(1, 900) i"
        )
    found = audit_log(server, table="texts", missing=0, window=0, **QUICK)
    assert found.rows.decided[1] - found.rows.decided[0] == pytest.approx(1.5)
    assert found.rows.decided[0] == pytest.approx(1767218401.5)
    assert "decimal point" in found.log.notes[0]


def test_what_cannot_be_read_is_one_sentence(server):
    for table in ("nowhere", "(SELECT 1 AS x)", None):
        with pytest.raises(ValueError, match=r"cannot be read|no column|no pools, .* or a table with --table") as asked:
            audit_log(server, table=table)
        assert "\n" not in str(asked.value)
    with pytest.raises(ValueError, match=r"://user:\*\*\*@") as asked:
        audit_log("postgresql://user:secret@localhost:1/none", table="x")
    assert "secret" not in str(asked.value)


@pytest.mark.parametrize("times", ["moments", "days", "none"])
def test_however_a_long_log_is_stored_the_sample_is_the_same(times, tmp_path, monkeypatch):
    monkeypatch.setattr("statepool.audit.counts.MOST_ROWS", 4_000)
    monkeypatch.setattr("statepool.audit.counts.SAMPLED", 2_000)
    columns = {name: values for name, values in log().items() if name in ("sku", "stage", "revenue", "ts")}
    if times == "days":
        columns["ts"] = np.floor(columns["ts"] / 86_400) * 86_400
    elif times == "none":
        columns.pop("ts")
    order = np.random.default_rng(1).permutation(6_000)
    (tmp_path / "parts").mkdir()
    for i, part in enumerate(np.array_split(order, 7)):
        write_columns({name: values[part] for name, values in columns.items()}, tmp_path / "parts" / f"{i}.parquet")
    whole = audit_log(write_columns(columns, tmp_path / "log.parquet"), window=0, **QUICK)
    parts = audit_log(tmp_path / "parts", window=0, **QUICK)
    assert 1_500 < whole.rows.action.size < 2_600
    same(*documents(whole, parts))
