"""`statepool replay`, `export`, `backup`, `archive` and `erase` on a pool's database."""

import csv
import json

import pytest
import sqlalchemy as sa

from command_line import statepool
from statepool.live import Database, Pool, maintenance


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path}/pools.db"
    with Pool.open(url, "home", [[0.7, 0.3], [0.2, 0.8]], ["tea", "cake"], ["left", "cart"], learner="uniform") as pool:
        for ticket in map(str, range(5)):
            pool.decide(ticket)
            pool.observe(ticket, "cart")
            pool.resolve(ticket, loss=0.5)
        pool.decide("open")
        pool.learn()
    return url


def test_replay_agrees_and_names_what_does_not(url):
    done = statepool("replay", url, "home", "--redraw")
    assert (done.returncode, "everything agrees" in done.stdout) == (0, True)
    assert json.loads(statepool("replay", url, "home", "--json").stdout)["agrees"] is True
    with Database(url) as database:
        decisions = database.tables.decisions
        change = sa.update(decisions).where(decisions.c.ticket == "3").values(probability=0.25)
        database.write(lambda connection: connection.execute(change))
    done = statepool("replay", url, "home", "--redraw")
    assert (done.returncode, "FAULT: " in done.stdout) == (1, True)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_export_and_what_changed_since(url, tmp_path, suffix):
    file = tmp_path / f"rows.{suffix}"
    said = json.loads(statepool("export", url, "home", file, "--json").stdout)
    assert (said["rows"], file.exists()) == (6, True)
    if suffix == "csv":
        rows = list(csv.DictReader(file.read_text().splitlines()))
        assert [row["ticket"] for row in rows] == ["0", "1", "2", "3", "4", "open"]
        assert rows[0]["state"] == "cart"
    again = json.loads(statepool("export", url, "home", file, "--after", said["cursor"], "--json").stdout)
    assert (again["rows"], again["cursor"]) == (0, said["cursor"])


def test_a_backup_is_a_database(url, tmp_path):
    done = statepool("backup", url, tmp_path / "copy.db", "--verify", "--json")
    said = json.loads(done.stdout)
    assert (said["agrees"], said["pools"]) == (True, [{"pool": "home", "decisions": 6, "fault": None}])
    with Pool.open(f"sqlite:///{tmp_path}/copy.db", "home") as pool:
        assert pool.find("3")["state"] == "cart"


def test_archive_moves_what_is_settled(url, tmp_path):
    said = json.loads(
        statepool("archive", url, "home", tmp_path / "old.parquet", "--older-than", "0s", "--json").stdout
    )
    assert (said["archived"], (tmp_path / "old.parquet").exists()) == (5, True)
    with Pool.open(url, "home") as pool:
        assert [row["ticket"] for row in pool.rows()] == ["open"]
    assert "nothing was written" in statepool("archive", url, "home", tmp_path / "more.parquet").stdout
    assert statepool("replay", url, "home", "--redraw").returncode == 0


def test_erase_all_tickets_or_none(url):
    assert statepool("erase", url, "home", "1", "never").returncode == 2
    with Pool.open(url, "home") as pool:
        assert pool.find("1")["ticket"] == "1"
    assert statepool("erase", url, "home", "1", "2").stdout == "home: tickets erased: 2\n"
    with Pool.open(url, "home") as pool:
        assert [row["ticket"] for row in pool.rows()] == ["0", None, None, "3", "4", "open"]
    assert statepool("replay", url, "home", "--redraw").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "URL", "away"), ("replay", "nothing", "home"), ("replay", "sqlite:////no/such/folder/x.db", "home"),
        ("export", "URL", "home", "rows.txt"), ("export", "URL", "home", "/no/such/folder/rows.csv"),
        ("backup", "URL", "/no/such/folder/copy.db"), ("backup", "sqlite:///missing.db", "copy.db"),
        ("archive", "URL", "home", "old.csv"), ("archive", "URL", "home", "old.parquet", "--older-than", "soon"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(url, tmp_path, arguments):
    done = statepool(*(url if each == "URL" else each for each in arguments), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("statepool: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", "add", "shop", "--role", "king"), ("keys", "drop", "shop"),
        ("keys", "renew", "shop", "--expires", "1d"), ("serve", "--host", "0.0.0.0", "--port", "0"),
    ],
)  # fmt: skip
def test_a_refused_command_makes_no_database(tmp_path, arguments):
    done = statepool(*arguments, "--store", f"sqlite:///{tmp_path}/new.db", cwd=tmp_path)
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_export_that_fails_keeps_the_file_before(tmp_path, suffix):
    def records():
        yield dict.fromkeys(maintenance.COLUMNS)
        raise KeyboardInterrupt

    file = tmp_path / f"rows.{suffix}"
    file.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        maintenance.export(records(), file)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]
