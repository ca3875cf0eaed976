"""Wrong types, shapes and names for arguments of public functions: an answer, or one sentence of ours."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from public_calls import WRONG, calls

CALLS = [call for call in calls() if call.good]
FOREIGN = re.compile(
    r"numba|nopython|pandas|traceback|could not convert|broadcast|operand|setting an array|inhomogeneous|ambiguous"
    r"|invalid literal|not supported between|cannot convert|unhashable|has no attribute",
    re.IGNORECASE,
)


@st.composite
def wrong_calls(draw):
    call = draw(st.sampled_from(CALLS))
    name = draw(st.sampled_from(sorted(call.good)))
    return call, name, draw(st.sampled_from(range(len(WRONG))))


@settings(max_examples=400)
@given(wrong_calls())
def test_a_wrong_argument_is_refused_in_one_sentence(wrong):
    call, name, number = wrong
    if call.name.startswith("grouping") and name == "dimension" and callable(WRONG[number]):
        return  # a function of theirs, which may raise what it likes
    try:
        call.function(**{**call.good, name: WRONG[number]})
    except ValueError as error:
        said = str(error)
        assert "\n" not in said
        assert len(said) < 500
        assert not FOREIGN.search(said), said


def test_the_good_calls_work():
    for call in CALLS:
        if not call.name.startswith("families"):
            call.function(**call.good)
