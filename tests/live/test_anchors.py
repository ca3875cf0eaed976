"""Notes of the chain kept elsewhere tell a journal that was rewritten, or cut, as a whole."""

import json
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from uuid import uuid4

import apsw
import msgspec
import psycopg
import pytest

from command_line import statepool
from live.pgbouncer import PgBouncer, program
from live.places import PostgresPlace
from live.test_restored import copy, play
from statepool.live.anchors import Anchor, anchors_at, heads
from statepool.live.backup import backup
from statepool.live.errors import AnchorsUnavailable, StoreUnavailable
from statepool.live.replay import replay


class Board(BaseHTTPRequestHandler):
    """Keeps what is posted, and gives it back; at some paths it misbehaves."""

    def do_POST(self):
        posted = self.rfile.read(int(self.headers["content-length"]))
        if self.path.startswith("/moved/"):
            self.send_response(int(self.path.removeprefix("/moved/")))
            self.send_header("location", "/elsewhere")
        elif self.path == "/garbage":
            self.wfile.write(b"no HTTP at all\r\n\r\n")
            return
        else:
            self.server.kept += posted
            self.send_response(204)
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        if self.path == "/short":
            self.send_header("content-length", str(len(self.server.kept) + 100))
        self.end_headers()
        self.wfile.write(self.server.kept[:-10] if self.path == "/cut" else self.server.kept)

    def do_HEAD(self):
        """Which it does not know."""
        self.send_response(404 if self.path == "/gone" else 405)
        self.end_headers()

    def log_message(self, *_):
        pass


NOTE = Anchor("t", "home", 1, "00")


def check_refused(*arguments, says):
    done = statepool(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert says in done.stderr
    return done.stderr


@pytest.fixture
def board():
    server = HTTPServer(("127.0.0.1", 0), Board)
    server.kept = b""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["file", "url", "table", "postgres"])
def where(request, tmp_path):
    """A place of each kind for notes."""
    return {
        "file": lambda: str(tmp_path / "anchors.jsonl"),
        "url": lambda: request.getfixturevalue("board"),
        "table": lambda: f"sqlite:///{tmp_path}/audit.db",
        "postgres": lambda: request.getfixturevalue("database"),
    }[request.param]()


def test_a_place_that_is_gone_is_found_out_without_a_note(where, tmp_path):
    anchors = anchors_at(where)
    anchors.add([NOTE])
    anchors.look()
    assert anchors.read("home").anchors[-1] == NOTE
    if where.startswith("postgres"):
        with psycopg.connect(where) as database:
            database.execute("DROP TABLE statepool_anchors")
    elif where.startswith("http"):
        anchors = anchors_at(where + "gone")
    else:
        Path(where.removeprefix("sqlite:///")).unlink()
    with pytest.raises(AnchorsUnavailable, match=r"^anchor: "):
        anchors.look()


def test_a_journal_that_was_rewritten_disagrees(sqlite, tmp_path, where):
    pool = sqlite.make()
    play(pool, 10)
    older = copy(sqlite, tmp_path / "older.db")
    store = pool._journal.store
    anchors = anchors_at(where)
    anchors.add(heads(store))
    play(pool, 10)
    anchors.add([*heads(store), Anchor("now", "another pool", 1, "00")])
    noted = anchors.read(sqlite.name).anchors
    assert len(noted) == 2
    found, _ = replay(store, sqlite.name, anchors=noted)
    assert (found.faults, found.anchors) == ([], 2)

    with closing(older.store()) as cut:  # the same journal, without its last events
        found, _ = replay(cut, sqlite.name, anchors=noted)
    assert found.anchors == 1
    assert len(found.faults) == 1
    assert "cut short" in found.faults[0]

    with older.open() as other:  # and another one in their place, sound in itself
        play(other, 15, seed=9)
    with closing(older.store()) as rewritten:
        assert replay(rewritten, sqlite.name)[0].faults == []
        found, _ = replay(rewritten, sqlite.name, anchors=noted)
    assert found.anchors == 1
    assert "is not the one that was noted at" in found.faults[0]


def test_bad_places_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="expected a file"):
        anchors_at("ftp://somewhere")
    with pytest.raises(ValueError, match="cannot be read"):
        anchors_at(str(tmp_path / "none")).read("home")
    for wrong in (b"hello", b'{"time":"t","pool":"ho{"time":"t","pool":"home","seq":1,"hash":"00"}', b'{"\xff":1}'):
        (tmp_path / "wrong").write_bytes(msgspec.json.encode(NOTE) + b"\n" + wrong + b"\n")
        with pytest.raises(ValueError, match=r"line 2 of .* is no anchor .*take it out"):
            anchors_at(str(tmp_path / "wrong")).read("home")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        anchors_at(str(tmp_path)).add([])
    with pytest.raises(StoreUnavailable, match="did not answer"):
        anchors_at("http://127.0.0.1:9/").add([NOTE])


@pytest.fixture
def store(sqlite):
    """The URL of a store with one pool, and the name of that."""
    pool = sqlite.make()
    play(pool, 3)
    pool.close()
    return f"sqlite:///{sqlite.path}", sqlite.name


def test_a_place_without_a_note_of_the_pool_is_not_agreement(store, tmp_path, where):
    if str(tmp_path) in where:
        Path(where.removeprefix("sqlite:///")).touch()
    check_refused("replay", *store, "--anchors", where, says=f"holds no note of '{store[1]}'")
    anchors_at(where).add([NOTE])
    said = check_refused("replay", *store, "--anchors", where, says=f"holds no note of '{store[1]}'")
    assert ("postgres@" in said, "127.0.0.1" in said) == (False, False), "an address may hold a password"
    check_refused("replay", store[0], "nowhere", "--anchors", where, says="'nowhere' is not in this store")


def test_reading_makes_nothing(tmp_path, database):
    with pytest.raises(ValueError, match="there is no file"):
        anchors_at(f"sqlite:///{tmp_path}/typo.db").read("home")
    (tmp_path / "empty.db").touch()
    assert anchors_at(f"sqlite:///{tmp_path}/empty.db").read("home") == ([], 0)
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [("empty.db", 0)]
    schema = f"s{uuid4().hex}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        assert anchors_at(f"{database}&options=-csearch_path%3D{schema}").read("home") == ([], 0)
        made = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
    assert made == []


def test_who_writes_to_the_same_file_of_notes_is_waited_for(tmp_path, store):
    place = f"sqlite:///{tmp_path}/audit.db"
    assert statepool("anchor", store[0], place).returncode == 0
    with closing(apsw.Connection(f"{tmp_path}/audit.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.5, other.execute, ["COMMIT"])
        timer.start()
        assert statepool("anchor", store[0], place).returncode == 0
        timer.join()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_note_is_not_lost_on_the_way_elsewhere(store, board, code):
    says = check_refused("anchor", store[0], f"{board}moved/{code}", says="nothing was noted")
    assert f"{board}elsewhere" in says
    assert anchors_at(board).read(store[1]).anchors == []


def test_a_notary_that_answers_garbage_or_a_part_is_told_in_one_sentence(store, board):
    check_refused(
        "anchor", store[0], f"{board}garbage", says="statepool: anchor: the URL of the anchors did not answer (no"
    )
    assert statepool("anchor", store[0], board).returncode == 0
    check_refused("replay", *store, "--anchors", f"{board}short", says="only a part of its answer")
    check_refused("replay", *store, "--anchors", f"{board}cut", says="ends within a line")
    assert statepool("replay", *store, "--anchors", board).returncode == 0


@pytest.mark.parametrize(
    "where",
    ["https://exa mple/x y", "http://[bad", "http://", "http:///path", "http://host:port/", "https://me:secret@host/",
     "https://host/caf\u00e9", "https://host/a\nb"],
)  # fmt: skip
def test_an_address_that_nobody_can_ask_is_refused(store, where):
    for arguments in (("anchor", store[0], where), ("serve", "--store", store[0], "--anchor", where)):
        assert "secret" not in check_refused(*arguments, says="anchor: ")


@pytest.mark.parametrize("where", ["sqlite:///", "sqlite:///:memory:", "sqlite://audit.db", "sqlite:///a.db?mode=ro"])
def test_a_database_without_a_file_keeps_no_notes(store, where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (("anchor", store[0], where), ("serve", "--store", store[0], "--anchor", where)):
        check_refused(*arguments, says="names no file: expected sqlite:///relative.db")


def test_the_store_itself_is_no_place_for_its_notes(store, tmp_path, monkeypatch):
    file = tmp_path / "pool.db"
    (tmp_path / "link.db").symlink_to(file)
    (tmp_path / "other.db").hardlink_to(file)
    monkeypatch.chdir(tmp_path)
    before = file.read_bytes()
    for where in (store[0], "sqlite:///pool.db", "sqlite:///./link.db", "sqlite:///other.db", "pool.db", str(file)):
        check_refused("anchor", store[0], where, says="is the store itself")
        check_refused("serve", "--store", store[0], "--anchor", where, says="is the store itself")
        check_refused("replay", *store, "--anchors", where, says="is the store itself")
    check_refused("serve", "--store", "sqlite:///new.db", "--anchor", "./new.db", says="is the store itself")
    assert file.read_bytes() == before
    assert not (tmp_path / "new.db").exists()


@pytest.fixture(scope="module")
def audit(server):
    """Another database of the same server."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE audit")
        connection.execute("CREATE ROLE notary LOGIN")
        connection.execute("GRANT ALL ON DATABASE postgres TO notary")
        yield f"postgresql://postgres@/audit?host={server.folder}"
        connection.execute("DROP DATABASE audit WITH (FORCE)")
        connection.execute("DROP OWNED BY notary")
        connection.execute("DROP ROLE notary")


def check_no_place_for_notes(store, name, where):
    for arguments in (
        ("anchor", store, where),
        ("serve", "--store", store, "--anchor", where),
        ("replay", store, name, "--anchors", where),
    ):
        said = check_refused(*arguments, says="is the store itself")
        assert "postgres@" not in said


def test_a_database_is_the_same_whatever_its_address(server, audit):
    place = PostgresPlace(server.url())
    with closing(place.make()) as pool:
        play(pool, 3)
        pool.settle()
    folder = server.folder
    for same in (
        place.url, f"postgres://postgres@/?host={folder}", f"postgresql://postgres:any@/postgres?host={folder}/",
        f"postgresql://notary@/postgres?host={folder}&port=5432", f"postgresql://notary@/postgres?host=/none,{folder}",
    ):  # fmt: skip
        check_no_place_for_notes(place.url, place.name, same)
    assert statepool("anchor", place.url, audit).returncode == 0
    assert len(anchors_at(audit, place.url).read(place.name).anchors) == 1


@pytest.mark.skipif(program() is None, reason="PgBouncer is not installed (apt-get install pgbouncer)")
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_database_is_the_same_behind_a_pooler(server, audit, mode):
    place = PostgresPlace(server.url())
    with closing(place.make()) as pool:
        play(pool, 3)
        pool.settle()
    bouncer = PgBouncer(server, mode)
    try:
        check_no_place_for_notes(place.url, place.name, bouncer.url())
        check_no_place_for_notes(bouncer.url(), place.name, place.url)
        assert statepool("anchor", bouncer.url(), audit).returncode == 0
    finally:
        bouncer.stop()


@pytest.mark.parametrize("kind", ["backup", "wal", "text", "log"])
def test_a_file_of_something_else_gets_no_notes(store, tmp_path, kind):
    """The prefix of a URL is soon forgotten, and a backup with a line at its end is none."""
    file = tmp_path / "other"
    if kind == "backup":
        backup(store[0], file)
    elif kind == "wal":
        file.write_bytes((0x377F0682).to_bytes(4) + bytes(100))
    else:
        file.write_text("hello\n" if kind == "text" else '{"time":"t","route":"decide","status":200}\n')
    before = file.read_bytes()
    check_refused("anchor", store[0], file, says=f"anchor: {file} holds something else")
    check_refused("serve", "--store", store[0], "--anchor", file, says=f"anchor: {file} holds something else")
    assert file.read_bytes() == before


def test_a_line_that_was_cut_off_costs_no_other_note(tmp_path):
    whole = msgspec.json.encode(NOTE)
    for length in range(1, len(whole)):
        file = tmp_path / f"{length}.jsonl"
        file.write_bytes(whole + b"\n" + whole[:length])
        anchors = anchors_at(str(file))
        assert anchors.read("home") == ([NOTE], 1)
        anchors.add([NOTE, NOTE])
        assert anchors.read("home") == ([NOTE] * 3, 1)
        anchors.add([NOTE])
        assert file.read_bytes().count(b"\n") == 5, "only what needs a new line gets one"


def test_replay_says_that_a_note_was_cut_off(store, tmp_path):
    file = tmp_path / "anchors.jsonl"
    file.write_bytes(msgspec.json.encode(NOTE)[:20])
    assert statepool("anchor", store[0], file).returncode == 0
    done = statepool("replay", *store, "--anchors", file)
    assert (done.returncode, "1 lines of those notes were cut off" in done.stdout) == (0, True), done
    found = json.loads(statepool("replay", *store, "--anchors", file, "--json").stdout)
    assert (found["anchors"], found["anchors_cut_off"]) == (1, 1)
