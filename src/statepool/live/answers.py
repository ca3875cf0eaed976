"""How requests that bring rows of their own are answered: from a version, and the catalogue and settings it is of.

A value as of one change of either, that any thread may ask: a request needs neither the pool's lock nor its state, and
a decision that comes into the journal after the next change is drawn again as it was.
"""

from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from statepool.live.catalogue import Catalogue
from statepool.live.limits import Limits
from statepool.live.live_learner import LiveLearner
from statepool.live.offers import DIGEST_BYTES, Offer, Offers
from statepool.live.settings import Settings
from statepool.live.versions import Version


class Answer(NamedTuple):
    """The number of an action (negative: of a candidate that the catalogue does not have), its probability, whether
    it was kept from the learner, what travels with it, and its label."""

    action: int
    probability: float
    held: bool
    carry: bytes
    label: Any


class Answers:
    """`live_learner` lends its learner: what it has learnt is not looked at, that is in the version."""

    def __init__(self, catalogue: Catalogue, settings: Settings, live_learner: LiveLearner) -> None:
        self.offers, self.limits = Offers(catalogue), Limits(settings, catalogue)
        self._settings, self._live_learner = settings, live_learner

    def offer(self, context: Any, candidates: Any) -> Offer:
        """What a request may be answered with."""
        if context is not None and candidates is not None:
            raise ValueError("request: has a context and candidates, expected one of them at most")
        if self._live_learner.learns_map:
            raise ValueError("request: brings rows, expected none where the pool learns the map")
        return self.offers.of_candidates(candidates) if context is None else self.offers.of_context(context)

    def answer(self, version: Version, offer: Offer, uniform: float) -> Answer:
        """What a version answers."""
        assert version.known is not None
        with self._live_learner.rooms:
            own = self.limits.keep(*self._live_learner.answer(version.known, offer), offer.numbers)
            place, held = own.find(uniform)
            carry = self._live_learner.travelling(offer, own.distribution, place)
        probability = min(own.distribution.item(place), 1.0)
        return Answer(int(offer.numbers[place]), probability, held, carry, offer.labels[place])

    def has_room(self, offer: Offer, brought: int) -> bool:
        """Whether rows that a request brought are kept, where so many bytes of such are kept already."""
        return brought + offer.P.nbytes <= self._settings.request_bytes

    def digest(self) -> bytes:
        """Of all that an answer takes besides the version and the learner."""
        settings = msgspec.msgpack.encode(self._settings)
        return blake2b(settings + self.offers.digest(), digest_size=DIGEST_BYTES).digest()
