"""What can go wrong with a live pool, each with one clear sentence."""


class UnknownTicket(ValueError):  # noqa: N818
    """No decision of this pool has that ticket."""


class NoSuchPool(ValueError):  # noqa: N818
    """The store has no pool of that name."""


class NoStore(ValueError):  # noqa: N818
    """There are no tables of statepool, and whoever asked only reads: none were made."""


class OlderTables(ValueError):  # noqa: N818
    """The tables are those of an earlier release, and whoever asked only reads: they were left as they are."""

    def __init__(self, what: str, found: int, newest: int, how_to_copy: str) -> None:
        super().__init__(
            f"{what} has tables of version {found}, made by an earlier statepool, and this one reads version {newest}; "
            f"what only reads does not change them: {how_to_copy}, and then `statepool serve` (without --follow) or "
            "Pool.open brings them up to date"
        )


class Conflict(ValueError):  # noqa: N818
    """The same ticket came before with something else in it; nothing was changed."""


class StoreUnavailable(RuntimeError):  # noqa: N818
    """The store did not answer; what was not acknowledged may or may not be there: repeat the call, it is harmless."""


class AnchorsUnavailable(StoreUnavailable):
    """The place of the anchors did not take or give notes; the store may well answer."""


class Busy(StoreUnavailable):
    """Somebody else kept the lock for as long as one waits; whoever waited for the same turn need not wait again."""


class Taken(StoreUnavailable):
    """Somebody else decided for the same ticket at the same time; asked again, the store knows that decision."""


class LaneTaken(Taken):
    """Somebody else wrote to the same lane: a copy of this process goes on elsewhere."""


class InTurn(Exception):  # noqa: N818
    """A request can be answered under the pool's lock only; it was not answered, and is asked again there."""


class Damaged(StoreUnavailable):
    """What the store holds does not follow from itself; nothing is acknowledged on top of it."""
