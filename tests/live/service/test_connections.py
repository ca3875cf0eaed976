"""What a connection may cost before anybody is known, over real sockets."""

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial

import httpx
import pytest
import uvicorn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from statepool.live.service.connections import ConnectionLimits, Crowd, GuardedProtocol
from statepool.live.service.limits import forwarded_for, network_of

HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n"


async def app(scope, receive, send):
    """Reads the body; `/endless` sends for as long as anybody reads."""
    length, message = 0, {"more_body": True}
    while message.get("more_body"):
        message = await receive()
        length += len(message.get("body", b""))
    if message["type"] == "http.disconnect":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while scope["path"] == "/endless":
        await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"%d" % length})


class Short:
    """An application that also answers plain calls: `/short` at once, `/held` when the next `/short` comes."""

    def __init__(self):
        self.seen, self.is_holdout = [], []

    async def __call__(self, scope, receive, send):
        await app(scope, receive, send)

    def short_call(self, method, path):
        return path if path.startswith(("/short", "/held")) else None

    def take(self, call, headers, client, body, answered):
        self.seen.append((call, client[0], bytes(body)))
        if call.startswith("/held"):
            self.is_holdout.append(answered)
            return
        answered(*((404, {"x-more": "yes"}, b'{"no":1}') if call.endswith("missing") else (200, {}, b'{"short":1}')))
        while self.is_holdout:
            self.is_holdout.pop()(200, {}, b'{"is_holdout":1}')


class Listening:
    def __init__(self, server, app, crowd):
        self.server, self.app, self.crowd = server, app, crowd
        self.port = port = server.servers[0].sockets[0].getsockname()[1]
        self.made = []
        self.url = f"http://127.0.0.1:{port}"

    def connect(self, sent=b""):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.made.append(connection)
        connection.sendall(sent)
        return connection

    def serves(self):
        return httpx.get(self.url, timeout=20).text == "0"


@contextmanager
def listening(app=app, **limits):
    crowd = Crowd(ConnectionLimits(**limits))
    config = uvicorn.Config(
        app, port=0, http=partial(GuardedProtocol, crowd), ws="none", lifespan="off", log_level="critical",
        timeout_keep_alive=1, server_header=False, date_header=False, proxy_headers=False,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    found = Listening(server, app, crowd)
    try:
        yield found
    finally:
        for connection in found.made:
            connection.close()
        server.force_exit = server.should_exit = True
        thread.join()


def answer_of(connection):
    """Status and sentence, once the connection was closed by the service."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def send_until_cut(connection, piece, most):
    """How much went through."""
    sent = 0
    try:
        while sent < most:
            connection.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


@pytest.fixture(scope="module")
def open_house():
    with listening() as found:
        yield found


def test_requests_within_the_limits_are_served(open_house):
    assert open_house.serves()
    headers = {f"x-{number}": "y" * 100 for number in range(90)}
    assert httpx.post(open_house.url, headers=headers, content=b"z" * 3_000_000, timeout=20).text == "3000000"
    with httpx.Client(base_url=open_house.url) as client:
        assert [client.post("/", content=b"z" * size).text for size in (0, 20_000, 1)] == ["0", "20000", "1"]


def test_a_head_that_does_not_end_is_refused_while_it_comes(open_house):
    for start in (HEAD + b"x: ", b"GET /"):
        connection = open_house.connect(start + b"a" * 20_000)
        status, sentence = answer_of(connection)
        assert (status, "larger than 16384 bytes" in sentence) == (431, True)
    connection = open_house.connect(HEAD)
    assert send_until_cut(connection, b"x: y\r\n" * 1000, 1 << 30) < 1 << 24


def test_headers_are_counted(open_house):
    status, sentence = answer_of(open_house.connect(HEAD + b"a: b\r\n" * 101 + b"\r\n"))
    assert (status, sentence) == (431, "the request has more than 100 headers")


def test_trailers_are_part_of_what_is_limited(open_house):
    start = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    status, _ = answer_of(open_house.connect(start + b"x: " + b"a" * 40_000))
    assert status == 431


def test_a_queue_of_requests_on_one_connection_is_short(open_house):
    connection = open_house.connect((b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n") * 2000)
    received = b""
    while b"without waiting for an answer" not in received[-70_000:]:
        piece = connection.recv(65536)
        assert piece, "the connection ended without a word"
        received = received[-70_000:] + piece


def test_what_is_no_http_is_answered_in_one_sentence(open_house):
    assert answer_of(open_house.connect(b"\x16\x03\x01 no\r\n\r\n")) == (
        400,
        "the request is not HTTP/1.1 that can be read",
    )


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"GET", HEAD, b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc",
        HEAD + b"\r\n" + b"\r",  # an answer, and then a byte that begins nothing
    ],
)  # fmt: skip
def test_who_is_late_is_cut(sent):
    with listening(head_seconds=0.3, body_seconds=0.3) as found:
        connection = found.connect(sent)
        with suppress(ConnectionResetError):
            while connection.recv(65536):
                pass
        assert found.serves()


def test_a_drip_does_not_buy_time():
    with listening(head_seconds=0.5) as found:
        connection = found.connect(HEAD)
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 15:
                connection.sendall(b"a: b\r\n")
                time.sleep(0.05)
        assert time.monotonic() - began < 10


def test_who_does_not_read_the_answer_is_cut():
    with listening(reading_seconds=0.3) as found:
        found.connect(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        deadline = time.monotonic() + 15
        while not found.crowd._inside:
            assert time.monotonic() < deadline
        while found.crowd._inside:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_crowd_of_half_open_requests_makes_room_for_the_next():
    with listening(connections=40, of_an_address=1000, head_seconds=60) as found:
        for _ in range(120):
            found.connect(HEAD)
        assert found.serves()
        assert len(found.crowd._inside) <= 40
        assert sum(found.crowd._of.values()) == len(found.crowd._inside)


def test_an_address_has_its_share_and_a_proxy_speaks_for_many():
    with listening(connections=100, of_an_address=8, head_seconds=60) as found:
        for _ in range(30):
            found.connect(HEAD)
        assert found.serves()
        assert len(found.crowd._inside) <= 8
    with listening(connections=100, of_an_address=8, proxies=("127.0.0.1",)) as found:
        for _ in range(30):
            found.connect(HEAD)
        assert found.serves()
        assert len(found.crowd._inside) >= 30


def test_who_is_being_answered_is_not_sent_away():
    with listening(connections=2) as found:
        busy = [found.connect(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n") for _ in range(2)]
        for connection in busy:
            assert connection.recv(100)
        status, sentence = answer_of(found.connect(HEAD + b"\r\n"))
        assert (status, "too many connections" in sentence) == (503, True)
        for connection in busy:
            assert connection.recv(100)


def test_a_caller_of_ipv6_has_a_whole_network():
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1")
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")
    assert network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("") == ""


ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"short":1}'


def post(path, body=b"{}", more=b""):
    head = b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n" % (path, len(body))
    return head + more + b"\r\n" + body


def read(connection, size):
    said = b""
    while len(said) < size and (more := connection.recv(65536)):
        said += more
    return said


@pytest.fixture
def short():
    with listening(Short()) as found:
        yield found


def test_requests_on_the_short_way_are_answered_in_order_on_one_connection(short):
    connection = short.connect(post(b"/short"))
    assert read(connection, len(ANSWER)) == ANSWER
    connection.sendall(post(b"/short/%C3%A9?x=1", b"[1]"))
    assert read(connection, len(ANSWER)) == ANSWER
    assert [(call, body) for call, _, body in short.app.seen] == [("/short", b"{}"), ("/short/é", b"[1]")]
    connection.sendall(HEAD + b"\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")
    connection.sendall(post(b"/short/missing"))
    assert b"404" in (said := connection.recv(4096))
    assert b"x-more: yes" in said


def test_a_body_that_comes_in_pieces_is_handed_over_whole(short):
    sent = post(b"/short", b"x" * 10_000)
    connection = short.connect(sent[:70])
    for start in range(70, len(sent), 1000):
        time.sleep(0.01)
        connection.sendall(sent[start : start + 1000])
    assert read(connection, len(ANSWER)) == ANSWER
    assert short.app.seen[0][2] == b"x" * 10_000


def test_whoever_does_not_wait_is_answered_in_order_all_the_same(short):
    """The second request is behind one that is being answered, so it goes the ordinary way, after it."""
    connection = short.connect(post(b"/held") + post(b"/other", b"four"))
    while not short.app.is_holdout:
        time.sleep(0.01)
    assert read(short.connect(post(b"/short")), len(ANSWER)) == ANSWER
    said = read(connection, 150)
    assert said.index(b'{"is_holdout":1}') < said.index(b"4\r\n")


@pytest.mark.parametrize(
    "sent",
    [
        post(b"/short", b"x" * 20_000), post(b"/short", more=b"connection: close\r\n"),
        post(b"/short", more=b"expect: 100-continue\r\n"), post(b"http://x/short"), post(b"/short#there"),
        b"POST /short HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}",
        b"POST /short HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_unusual_goes_the_ordinary_way(short, sent):
    connection = short.connect(sent)
    assert b"200 OK" in connection.recv(4096) + connection.recv(4096)
    assert short.app.seen == []


def test_whoever_went_away_is_not_answered_and_nobody_minds(short):
    connection = short.connect(post(b"/held"))
    while not short.app.is_holdout:
        time.sleep(0.01)
    connection.close()
    while len(short.crowd._inside):
        time.sleep(0.01)
    assert read(short.connect(post(b"/short")), len(ANSWER)) == ANSWER


def test_a_service_that_stops_answers_first_what_it_has_taken():
    with listening(Short()) as found:
        connection = found.connect(post(b"/held"))
        while not found.app.is_holdout:
            time.sleep(0.01)
        found.server.should_exit = True
        time.sleep(0.3)
        found.server.servers[0].get_loop().call_soon_threadsafe(
            found.app.is_holdout.pop(), 200, {}, b'{"is_holdout":1}'
        )
        said = read(connection, 1 << 20)
        assert said.endswith(b'{"is_holdout":1}')
        assert b"connection: close" in said


class ParsesAnew(GuardedProtocol):
    """Remembers no head."""

    def _learn(self, data, cycle):
        pass


class Wire:
    """What a transport is to a protocol; keeps what was written."""

    def __init__(self):
        self.said, self.closed = [], False

    def get_extra_info(self, name):
        return ("10.0.0.1", 5) if name == "peername" else None

    def write(self, data):
        self.said.append(bytes(data))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close

    def pause_reading(self):
        pass

    resume_reading = pause_reading


async def heard(kind, pieces):
    """What a connection that sends these pieces is told, and what reached the application by a plain call."""
    app, taken = Short(), 0
    config = uvicorn.Config(
        app, lifespan="off", log_level="critical", server_header=False, date_header=False, proxy_headers=False
    )
    config.load()
    crowd = Crowd(ConnectionLimits(proxies=("10.0.0.1",)))
    protocol, wire = kind(crowd, config=config, server_state=ServerState(), app_state={}), Wire()
    protocol.connection_made(wire)
    for piece in pieces:
        if wire.closed:
            break
        before = protocol._known
        protocol.data_received(piece)
        taken += before is not None and protocol._known is before
        for _ in range(20):
            await asyncio.sleep(0)
    while app.is_holdout:
        app.is_holdout.pop()(200, {}, b"{}")
    for _ in range(20):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return (app.seen, b"".join(wire.said), wire.closed), taken


SENT = [
    post(b"/short"), post(b"/short", b""), post(b"/short", b"[]"), post(b"/short", b"[1, 2]"), post(b"/held"),
    post(b"/short/missing"), post(b"/other"), HEAD + b"\r\n", b"\r\n", b"P", b"\r\n\r\n",
    post(b"/short", more=b"x-forwarded-for: 1.2.3.4\r\n"), post(b"/short", more=b"x-forwarded-for: 1.2.3.5\r\n"),
    post(b"/short", b"\r\n\r\n{}"), post(b"/short").replace(b"\r\n", b"\n"),
    post(b"/short", more=b"connection: close\r\n"),
    b"POST /short HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@example([(post(b"/short"), 0, []), (b"P", 0, []), (post(b"/short"), 0, [])])
@example([(post(b"/short", b""), 0, []), (b"P", 3, [])])
@given(st.lists(st.tuples(st.sampled_from(SENT), st.integers(0, 3), st.lists(st.integers(1, 150), max_size=2))))
def test_a_head_that_is_known_is_read_as_it_was_parsed(sent):
    """Whatever comes, in whatever pieces, again and again."""
    pieces = [b""]
    for request, times, cuts in sent:
        pieces[-1] += request
        for place in sorted(cuts):
            pieces[-1:] = pieces[-1][:place], pieces[-1][place:]
        pieces += [*pieces[-1:] * times, *[request] * times, b""]
    pieces = [piece for piece in pieces if piece]
    (known, _), (parsed, taken) = (asyncio.run(heard(kind, pieces)) for kind in (GuardedProtocol, ParsesAnew))
    assert known == parsed
    assert not taken


def test_a_head_is_parsed_once_on_a_connection_that_is_kept():
    (found, taken) = asyncio.run(heard(GuardedProtocol, [post(b"/short")] * 5 + [post(b"/short", b"[]")]))
    assert taken == 5
    assert [body for _, _, body in found[0]] == [b"{}"] * 5 + [b"[]"]
    assert found[1] == ANSWER * 6


def test_a_connection_that_waits_after_a_short_answer_is_closed_in_time(short):
    connection = short.connect(post(b"/short"))
    assert read(connection, 1 << 20) == ANSWER  # up to the end of the connection


def test_a_proxy_says_for_whom_it_speaks():
    told = b"x-forwarded-for: 10.0.0.9, 10.1.2.3:80, 127.0.0.1\r\n"
    for proxies, expected in ((("127.0.0.1",), "10.1.2.3"), ((), "127.0.0.1")):
        with listening(Short(), proxies=proxies) as found:
            assert read(found.connect(post(b"/short", more=told)), len(ANSWER)) == ANSWER
            assert [client for _, client, _ in found.app.seen] == [expected]
    assert forwarded_for([(b"x-forwarded-for", b"[2001:db8::1]:443")], ()) == "2001:db8::1"
    assert forwarded_for([(b"x-forwarded-for", b"2001:db8::1")], ()) == "2001:db8::1"
    assert forwarded_for([], ("127.0.0.1",)) == ""


def test_whoever_asks_to_close_is_told_that_it_is_closed(short):
    answer = httpx.post(f"{short.url}/short", headers={"connection": "close"}, timeout=20)
    assert answer.headers["connection"] == "close"
    assert answer.text == "0", "the ordinary way"
