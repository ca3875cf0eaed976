"""Opening the store a command was told of: whatever is in the way is said in one sentence."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statepool.live.stores.store import Store


class needing_live:  # noqa: N801 (used as a statement)
    """A part that is not installed, or a store that does not answer, is said in one sentence."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from statepool.live.errors import StoreUnavailable

        if isinstance(error, ImportError):
            raise ValueError(f'{error.name} is not installed, expected pip install "statepool[live]"') from None
        if isinstance(error, StoreUnavailable):
            raise ValueError(f"store: {error}") from None


def open_store(url: str, create: bool = True) -> "Store":
    from statepool.live import stores
    from statepool.live.errors import StoreUnavailable

    try:
        return stores.open_store(url, create)
    except StoreUnavailable as error:
        raise ValueError(f"store: {error}") from None
