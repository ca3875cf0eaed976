"""Events in few bytes: each comes back as it was, to the bit, has one encoding, and what is old is read as it was."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statepool.live import luck
from statepool.live.events import (
    Corrected,
    Decided,
    Expired,
    Opened,
    Refreshed,
    Resolved,
    Seen,
    columns_of,
    decode,
    encode,
    erase,
    erased_of,
    time_of,
)  # fmt: skip
from statepool.live.packed import is_packed

TIMES = st.integers(-(1 << 60), 1 << 60)
NUMBERS = st.integers(0, 1 << 46)
FLOATS = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**31, 2.0**60])
MAYBE = st.none() | FLOATS
BLOBS = st.binary(max_size=40)
SECRET = bytes(32)
COMMON = {
    "at": TIMES, "ticket": st.just(""), "number": NUMBERS, "version": NUMBERS, "action": st.integers(-99, 1 << 40),
    "is_holdout": st.booleans(), "decisions": NUMBERS, "state": st.none() | st.integers(0, 1 << 40), "loss": MAYBE,
    "carry": BLOBS, "of_request": st.booleans(), "round": st.none() | NUMBERS,
}  # fmt: skip
REPORTED = {"reported": MAYBE, "as_reward": st.booleans()}
LESSONS = (
    st.builds(Seen, **COMMON, reached=BLOBS)
    | st.builds(Resolved, **COMMON, **REPORTED)
    | st.builds(Expired, **COMMON)
    | st.builds(Corrected, **COMMON, **REPORTED, replaced=MAYBE)
)


@st.composite
def decisions(draw):
    lane, place, number = draw(st.sampled_from([b"", b"lane 1"])), draw(NUMBERS), draw(st.just(-1) | NUMBERS)
    minted = draw(st.booleans()) and (bool(lane) or number >= 0)
    ticket = draw(st.text(min_size=1, max_size=40))
    if minted:
        ticket = (
            luck.mint_in_lane(SECRET, lane, place)
            if lane
            else luck.mint(SECRET, draw(st.binary(min_size=6, max_size=6)), number)
        )[0]
    label = st.none() | st.text(max_size=5) | st.integers(-5, 5)
    return Decided(
        draw(TIMES), ticket, number, draw(NUMBERS), draw(st.integers(-9, 99)), draw(FLOATS), draw(st.booleans()),
        draw(MAYBE), minted, draw(BLOBS), draw(label), draw(label), draw(BLOBS), lane, place if lane else 0,
        draw(st.none() | NUMBERS),
    )  # fmt: skip


@st.composite
def versions(draw):
    n_states, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    q = draw(st.binary(min_size=8 * n_states, max_size=8 * n_states))
    kinds = {"q": q, "same": q[:8] * n_states, "own": draw(st.binary(min_size=8 * n_states, max_size=8 * n_states))}
    columns = [kinds[draw(st.sampled_from(sorted(kinds)))] for _ in range(width)]
    rows = [column[8 * state : 8 * state + 8] for state in range(n_states) for column in columns]
    record = {"q": q, "carry": b"".join(rows), "clock": draw(BLOBS)}
    record |= draw(st.sampled_from([{}, {"registers": b"12345678"}, {"unreached": [0]}]))
    return Refreshed(draw(TIMES), draw(NUMBERS), record, draw(BLOBS))


def check_comes_back(event):
    body = encode(event)
    assert is_packed(body)
    again = decode(body)
    assert repr(again) == repr(event)  # the bits of floats, and the order of a record's keys
    assert encode(again) == body
    assert time_of(body) == event.at
    assert erased_of(body) is None
    left = erase(event, b"hash")
    assert repr(decode(left)) == repr(event)
    assert time_of(left) == event.at


@pytest.mark.parametrize("kind", [Resolved, Corrected])
@pytest.mark.parametrize("reported", [0.0, 1.0, None])
def test_what_was_reported_is_not_taken_for_the_loss(kind, reported):
    of_decision = {
        "at": 1,
        "ticket": "",
        "number": 1,
        "version": 1,
        "action": 0,
        "is_holdout": False,
        "decisions": 2,
        "state": 0,
    }
    check_comes_back(kind(**of_decision, loss=0.5, reported=reported))


def test_every_field_of_an_event_is_tried():
    """One that `packed` does not know would be dropped in silence."""
    own = {Seen: {"reached"}, Resolved: set(REPORTED), Expired: set(), Corrected: {*REPORTED, "replaced"}}
    for kind, more in own.items():
        assert set(kind.__struct_fields__) == set(COMMON) | more
    assert len(Decided.__struct_fields__) == 16
    assert len(Refreshed.__struct_fields__) == 4


@given(LESSONS)
def test_what_is_told_of_a_decision_comes_back(event):
    check_comes_back(event)
    assert columns_of(event) == (event.kind, None, event.number)


@given(decisions())
def test_a_decision_comes_back(event):
    check_comes_back(event)
    follows = event.minted and not event.lane
    assert columns_of(event) == ("decision", None if follows else event.ticket, event.number)


@given(versions())
def test_a_version_comes_back(event):
    check_comes_back(event)


def test_a_version_has_each_column_once():
    q, other = bytes(range(80)), bytes(range(80, 160))
    columns = [q, b"usual---" * 10, other]
    carry = b"".join(column[8 * state : 8 * state + 8] for state in range(10) for column in columns)
    body = encode(Refreshed(0, 0, {"q": q, "carry": carry, "clock": b""}))
    assert (body.count(q), body.count(b"usual---"), body.count(other)) == (1, 1, 1)
    assert len(body) < 80 + 80 + 8 + 20


@pytest.mark.parametrize(
    "event",
    [
        Seen(5, "a ticket", 1, 2, 3, False, 4, 0, None),
        Decided(5, "00000000000000000000000a" + "0" * 16, 10, 1, 0, 0.5, False, minted=True),
        Refreshed(5, 1, {"q": b"12345678", "shares": b"12345678"}),
        Opened(5, ["a"], ["s"], [None], b"", "uniform", {}, b"seed", {}),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_is_old_or_rare_is_written_in_words(event):
    body = encode(event)
    assert not is_packed(body)
    assert decode(body) == event
    assert time_of(body) == 5


@pytest.mark.parametrize("body", [b"", b"\x00", bytes(9), b"\x97\x01\x05\x05\x05\x05\x05\x05", b"\x93\x63\x01\x02"])
def test_what_is_no_event_is_not_read_as_one(body):
    with pytest.raises(msgspec.MsgspecError):
        decode(body)


@given(NUMBERS, st.binary(min_size=6, max_size=6))
def test_tickets_are_found_by_their_number_and_cannot_be_made_up(number, epoch):
    (ticket, tail), (in_lane, tail_in_lane) = luck.mint(SECRET, epoch, number), luck.mint_in_lane(SECRET, epoch, number)
    assert (tail, tail_in_lane) == (luck.tail_of(ticket, b"", number), luck.tail_of(in_lane, epoch, number))
    assert (len(ticket), luck.number_of(ticket), luck.number_of(in_lane)) == (luck.TICKET_LENGTH, number, None)
    assert luck.is_minted_for(SECRET, ticket, b"", number)
    assert luck.is_minted_for(SECRET, in_lane, epoch, number)
    assert not luck.is_minted_for(SECRET, in_lane, b"", number)
    assert not luck.is_minted_for(SECRET, ticket, epoch, number)
    assert not luck.is_minted_for(SECRET, ticket, b"", number + 1)
    for each in (ticket, in_lane):
        assert luck.is_minted(SECRET, each)
        assert not luck.is_minted(b"another" * 4, each)
        flipped = each[:5] + ("A" if each[5] != "A" else "B") + each[6:]
        assert not luck.is_minted(SECRET, flipped)
        assert not luck.is_minted(SECRET, each + "=")


@pytest.mark.parametrize("ticket", ["ü" * 27, "=" * 27, "A" * 26 + "!", "AAAA!AAA" + "A" * 19, "\x7f" * 27, "AAAAAAA="])
def test_any_text_may_be_a_ticket(ticket):
    assert luck.number_of(ticket) in (None, 0)
    assert not luck.is_minted(SECRET, ticket)
    check_comes_back(Decided(1, ticket, 0, 1, 0, 0.5, False))


def test_a_caller_who_brings_what_looks_minted_has_a_column_for_it():
    """Or the table could not hold it to be unique."""
    ticket = luck.mint(b"another pool's", b"epoch1", 3)[0]
    assert columns_of(Decided(1, ticket, 3, 1, 0, 0.5, False)) == ("decision", ticket, 3)
    assert columns_of(Decided(1, ticket, 3, 1, 0, 0.5, False, minted=True)) == ("decision", None, 3)


def test_tickets_of_earlier_releases_are_known():
    named = (7).to_bytes(6, "big") + b"epoch1"
    old = (named + luck._proof(SECRET, named)).hex()
    assert luck.is_minted(SECRET, old)
    assert luck.is_minted_for(SECRET, old, b"", 7)
    assert luck.is_minted_for(SECRET, old, b"epoch1", 7)
    assert not luck.is_minted_for(SECRET, old, b"", 8)
    assert luck.number_of(old) is None, "its decision has a column for it"
    assert not luck.is_minted(SECRET, old.upper())
