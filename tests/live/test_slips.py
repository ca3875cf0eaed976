"""Slips of a user, each one sentence: what was given and what was expected; nothing of the pool changes."""

from contextlib import ExitStack, closing

import apsw
import psycopg
import pytest

import statepool as sp
from command_line import statepool
from live.places import ACTIONS, STATES, P
from statepool.live.errors import NoStore
from statepool.live.requests import Change, Decide
from statepool.live.stores import open_store


@pytest.mark.parametrize("now", [float("nan"), float("inf"), 1e300, -1e300, "today", True])
def test_a_time_that_is_none_is_refused_and_spoils_nothing(place, now):
    pool = place.make(expire_after=10, default_loss=1.0)
    pool.decide("x")
    with pytest.raises(ValueError, match="now: is"):
        pool.expire(now)
    assert pool.n_pending == 1


def test_a_refresh_that_no_journal_holds_is_refused_alone(sqlite):
    pool = sqlite.make()
    refused, decided = pool.run([Change({"refresh": 10**30}), Decide("x")])
    assert "refresh: is" in str(refused)
    assert decided.ticket == "x"
    with pytest.raises(ValueError, match="refresh: is"):
        sqlite.make(name="other", refresh=10**30)


@pytest.mark.parametrize("pairs", [5, None, "ab", [5], [("x",)], [("x", 0.5, 1)]])
def test_pairs_that_are_none_are_refused(sqlite, pairs):
    pool = sqlite.make()
    for call in (pool.observe_many, pool.resolve_many):
        with pytest.raises(ValueError, match=r"^pairs: "):
            call(pairs)


@pytest.mark.parametrize("categories", [5, "abc"])
def test_categories_are_a_list(sqlite, categories):
    with pytest.raises(ValueError, match=r"^categories: "):
        sqlite.make(categories=categories)


def test_a_share_is_given_once(sqlite):
    with pytest.raises(ValueError, match="'a' is there twice"):
        sqlite.make(shares=[("a", 0.1, 0.2), ("a", 0.5, 0.6)])


def test_numbers_too_large_for_a_row_are_refused(sqlite):
    pool = sqlite.make()
    with pytest.raises(ValueError, match=r"^row of 'd': "):
        pool.add_action("d", [10**400, 0, 0])
    with pytest.raises(ValueError, match=r"^P: "):
        sqlite.make(name="other", P=[[10**400, 0, 0]] * 3)


@pytest.mark.parametrize("url", [None, 5, b"sqlite:///x.db"])
def test_a_url_is_text(url):
    with pytest.raises(ValueError, match="expected sqlite:///"):
        sp.Pool.open(url, "home", P, ACTIONS, STATES)


def test_a_store_that_is_only_read_is_not_made(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        open_store(f"sqlite:///{tmp_path}/pool.db", create=False)
    assert not list(tmp_path.iterdir())


def test_a_store_that_is_only_read_gets_no_tables(tmp_path, server):
    (tmp_path / "empty.db").touch()
    database = server.emptied()
    for url in (f"sqlite:///{tmp_path}/empty.db", database):
        with pytest.raises(NoStore, match="holds no pools of statepool"):
            open_store(url, create=False)
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [("empty.db", 0)]
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT FROM pg_namespace WHERE nspname = 'statepool'").fetchall() == []


def make_foreign(file, kind):
    if kind == "text":
        file.write_text("root:x:0:0:root:/root:/bin/bash\n" * 40)
        return
    with closing(apsw.Connection(str(file))) as database:
        database.pragma("journal_mode", "wal" if kind == "wal" else "delete")
        # Many programs have a table of that name.
        database.execute("CREATE TABLE migrations (id, batch); CREATE TABLE orders (id)")


@pytest.mark.parametrize("kind", ["text", "rollback", "wal", "in use"])
@pytest.mark.parametrize("command", ["replay", "backup", "compact", "forget", "anchor", "serve", "audit"])
def test_a_file_of_something_else_stays_as_it_is(tmp_path, command, kind):
    """Its bytes, its mode and what lies beside it, whatever a command was told to do there."""
    file = tmp_path / "foreign.db"
    make_foreign(file, "wal" if kind == "in use" else kind)
    file.chmod(0o644)
    with ExitStack() as user:
        if kind == "in use":
            database = user.enter_context(closing(apsw.Connection(str(file))))
            database.execute("INSERT INTO orders VALUES (1)")
        before = [(each.name, each.stat().st_mode, each.read_bytes()) for each in sorted(tmp_path.iterdir())]
        url = f"sqlite:///{file}"
        given = {
            "replay": [url, "home"], "backup": [url, tmp_path / "y.db"], "compact": [url], "forget": [url, "home", "t"],
            "anchor": [url, tmp_path / "notes"], "serve": ["--store", url], "audit": [file],
        }  # fmt: skip
        done = statepool(command, *given[command])
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "is not a SQLite file" in done.stderr if kind == "text" else "of something else" in done.stderr
        after = [(each.name, each.stat().st_mode, each.read_bytes()) for each in sorted(tmp_path.iterdir())]
        assert [each for each in after if not each[0].endswith("-shm")] == [
            each
            for each in before
            if not each[0].endswith("-shm")  # there readers note how far they read
        ]


def test_a_store_that_others_write_is_looked_at_in_its_wal(sqlite):
    """Its tables may be nowhere else yet."""
    with closing(sqlite.make()):
        assert apsw_immutable(sqlite.path) == []
        open_store(sqlite.url, create=False).close()


def apsw_immutable(path):
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(f"file:{path}?immutable=1", flags)) as database:
        return list(database.execute("SELECT name FROM sqlite_schema"))


def test_a_clock_set_back_does_not_stop_the_learning(sqlite):
    now = [2e9]
    pool = sqlite.make(clock=lambda: now[0], refresh_seconds=1)
    pool.decide()
    now[0] -= 3e7
    versions = set()
    for _ in range(5):
        now[0] += 10
        made = pool.decide()
        pool.observe(made.ticket, "browse")
        pool.resolve(made.ticket, 0.5)
        versions.add(pool.find(made.ticket)["version"])
    assert len(versions) == 5


@pytest.mark.parametrize("url", ["sqlite:///{}/none.db", "sqlite:///{}/broken.db", "postgresql://127.0.0.1:1/none"])
@pytest.mark.parametrize("words", [("replay", "URL", "home"), ("keys", "list", "--store", "URL")])
def test_a_store_that_cannot_be_read_is_one_sentence(tmp_path, url, words):
    with sp.Pool.open(f"sqlite:///{tmp_path}/broken.db", "home", P, ACTIONS, STATES) as pool:
        pool.decide()
    broken = tmp_path / "broken.db"
    broken.write_bytes(broken.read_bytes()[:3000])
    given = url.format(tmp_path)
    done = statepool(*[given if word == "URL" else word for word in words])
    assert done.returncode == 2
    assert done.stderr.startswith("statepool: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("file", ["none/rows.csv", "none/rows.parquet", "rows.csv"])
def test_an_export_that_cannot_be_written_is_one_sentence(tmp_path, file):
    (tmp_path / "rows.csv").mkdir()
    url = f"sqlite:///{tmp_path}/pool.db"
    sp.Pool.open(url, "home", P, ACTIONS, STATES).close()
    done = statepool("replay", url, "home", "--export", tmp_path / file)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "export: " in done.stderr


def test_a_pool_that_is_not_there_is_told_without_the_password_of_its_store(server, tmp_path):
    url = server.emptied()
    sp.Pool.open(url, "home", P, ACTIONS, STATES).close()
    rows = "".join(f"{'ab'[n % 2]},{'xy'[n % 3 % 2]},{n % 2}\n" for n in range(60))
    (tmp_path / "log.csv").write_text(f"action,state,loss\n{rows}")
    given = url.replace("postgres@", "postgres:secret@")
    done = statepool("whatif", tmp_path / "log.csv", "--policy", f"{given}#none", "--outcome", "loss")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "holds home, expected one of them after a #" in done.stderr
    assert "secret" not in done.stderr
