"""Files of segments that are no part of the journal: not yet, as they are being written, or no longer.

Such a file may hold what somebody has had forgotten. So the store knows of it before its first byte is written, and
until it is gone: whoever compacts or forgets next removes what was left behind, by a process that was killed or by one
that could not. A file is named by the hash of its header, which holds a random number: no name comes back, and
whoever removes a file late removes no other.
"""

from collections.abc import Callable, Sequence

from statepool.live.errors import Damaged, StoreUnavailable
from statepool.live.stores.folders import Folder
from statepool.live.stores.segments import Header, Segment, digest_of
from statepool.live.stores.store import Loose, Sealed, Store, check_announced

WRITTEN_WITHIN = 3_600 * 1_000_000
"""Microseconds in which a file is written, or its writer is gone."""


def write_segment(store: Store, folder: Folder, header: Header, data: bytes) -> Sealed:
    """On disk, read back and compared; it stays loose until a batch takes it into the journal."""
    digest = digest_of(header)
    with store.batch(header.pool) as batch:
        batch.announce(digest, str(folder))
    try:
        folder.write(f"{digest}.segment", data)
        _read_back(folder, digest, header)
    except StoreUnavailable:
        _check_still_announced(store, header.pool, digest)
        raise
    return Sealed(header.first, header.last, header.after, digest, str(folder), len(data))


def _read_back(folder: Folder, digest: str, header: Header) -> None:
    written = Segment(folder, digest)
    faults: list[str] = []
    for _ in written.checked(faults):
        pass
    if faults or written.header != header:
        raise Damaged(faults[0] if faults else f"what was written to {folder} is not what is read there")


def _check_still_announced(store: Store, name: str, digest: str) -> None:
    """A file that somebody has cleared away meanwhile is not there to be read."""
    with store.view(name) as view:
        check_announced(digest, sum(each.digest == digest and each.at > 0 for each in view.loose()))


def discard(store: Store, name: str, segments: Sequence[Sealed]) -> None:
    """Remove what this process has written and cannot have sealed; somebody may have cleared it away already."""
    gone, left = [], []
    for each in segments:
        try:
            Folder(each.place).remove(f"{each.digest}.segment")
            gone.append(each.digest)
        except StoreUnavailable:
            left.append(each.digest)  # whoever comes next tries again
    with store.batch(name) as batch:
        batch.drop_loose(gone)
        batch.condemn(left)


def remove_loose(store: Store, name: str) -> None:
    """Remove every loose file; whoever is still writing one begins again."""
    _remove(store, name, lambda loose, late: True)


def remove_left_behind(store: Store, name: str) -> None:
    """The same, but for those that somebody may be writing."""
    _remove(store, name, lambda loose, late: loose.at < late)


def _remove(store: Store, name: str, is_meant: Callable[[Loose, int], bool]) -> None:
    with store.view(name) as view:
        late = view.clock() - WRITTEN_WITHIN
        if not any(is_meant(each, late) for each in view.loose()):
            return
    with store.batch(name) as batch:
        # Under the lock: a file may have been sealed since, and is then a part of the journal.
        loose = [each for each in batch.loose() if is_meant(each, late)]
        batch.condemn([each.digest for each in loose])
    gone, left = [], []
    for each in loose:
        try:
            was_there = Folder(each.place).remove(f"{each.digest}.segment")
        except StoreUnavailable as error:
            left.append(str(error))
            continue
        if was_there or abs(each.at) < late:  # else its writer may have begun, and be about to make it
            gone.append(each.digest)
    with store.batch(name) as batch:
        batch.drop_loose(gone)
    if left:
        raise StoreUnavailable(
            f"files that are no part of the journal cannot be removed, and may hold what was forgotten: "
            f"{'; '.join(left)}. Remove them, or run `statepool forget` again"
        )
