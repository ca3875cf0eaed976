"""Notes of the chain kept elsewhere tell a journal that was rewritten, or cut, as a whole."""

import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import psycopg
import pytest

from live.test_restored import copy, play
from statepool.live.anchors import Anchor, anchors_at, heads
from statepool.live.errors import StoreUnavailable
from statepool.live.replay import replay


class Board(BaseHTTPRequestHandler):
    """Keeps what is posted, and gives it back."""

    def do_POST(self):
        self.server.kept += self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.kept)

    def log_message(self, *_):
        pass


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


@pytest.mark.parametrize("kind", ["file", "url", "table", "postgres"])
def test_a_journal_that_was_rewritten_disagrees(sqlite, tmp_path, kind, request):
    where = {
        "file": lambda: str(tmp_path / "anchors.jsonl"),
        "url": lambda: request.getfixturevalue("board"),
        "table": lambda: f"sqlite:///{tmp_path}/audit.db",
        "postgres": lambda: request.getfixturevalue("database"),
    }[kind]()
    pool = sqlite.make()
    play(pool, 10)
    older = copy(sqlite, tmp_path / "older.db")
    store = pool._journal.store
    anchors = anchors_at(where)
    anchors.add(heads(store))
    play(pool, 10)
    anchors.add([*heads(store), Anchor("now", "another pool", 1, "00")])
    noted = anchors.read(sqlite.name)
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
    (tmp_path / "torn").write_bytes(msgspec.json.encode(Anchor("t", "home", 1, "00")) + b'\n{"time"')
    with pytest.raises(ValueError, match=r"line 2 of .* is no anchor"):
        anchors_at(str(tmp_path / "torn")).read("home")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        anchors_at(str(tmp_path)).add([])
    with pytest.raises(StoreUnavailable, match="did not answer"):
        anchors_at("http://127.0.0.1:9/").add([Anchor("t", "home", 1, "00")])


def test_reading_notes_makes_no_place_for_them(server, tmp_path):
    (tmp_path / "empty.db").touch()
    database = server.url()
    for where in (f"sqlite:///{tmp_path}/none.db", f"sqlite:///{tmp_path}/empty.db", database):
        with psycopg.connect(database) as connection:
            connection.execute("DROP TABLE IF EXISTS statepool_anchors")
        with pytest.raises(StoreUnavailable, match=r"^anchor: [^\n]+$"):
            anchors_at(where).read("home")
    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [("empty.db", 0)]
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT to_regclass('statepool_anchors')").fetchone() == (None,)
