"""What can go wrong with a live pool, each in one sentence."""


class UnknownTicket(ValueError):  # noqa: N818
    """No decision of this pool has that ticket (HTTP 404)."""


class NoSuchPool(ValueError):  # noqa: N818
    """The database has no pool of that name (HTTP 404)."""


class Conflict(ValueError):  # noqa: N818
    """The same ticket, or the same pool, is there with another value; nothing was changed (HTTP 409)."""


class StoreUnavailable(RuntimeError):  # noqa: N818
    """The database did not answer (HTTP 503). The call may or may not have taken effect: repeat it, that is safe."""


class ReadOnly(ValueError):  # noqa: N818
    """The database was opened for reading only (HTTP 405)."""
