"""What `statepool replay` does: check a pool's journal, export its rows, and say what was found."""

import json
import sys
from pathlib import Path
from re import fullmatch
from typing import Any

from rich.console import Console
from rich.progress import Progress

from statepool.commands.store import answering, opened
from statepool.live import Pool
from statepool.live.anchors import Notes, anchors_at, shown
from statepool.live.export import check_export, export
from statepool.live.replay import replay
from statepool.live.stores.store import Store

SHOWN = 20


def run(
    url: str, name: str, redraw: bool, file: Path | None, expect: str | None, anchors: str | None, as_json: bool
) -> bool:
    """Replay, then export the journal's rows if asked, and print what was found; whether everything agrees."""
    noted = _read_hash(expect)
    if file is not None:
        check_export(file)  # before the long part
    with answering():
        kept = Notes([]) if anchors is None else anchors_at(anchors, url).read(name)
        with opened(url) as store:
            if anchors is not None and not kept.anchors:
                _refuse_no_notes(store, name, anchors)
            with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
                task = progress.add_task("replaying", total=None)
                checked, _ = replay(
                    store, name, redraw, lambda seq: progress.update(task, completed=seq), noted, kept.anchors
                )
            found = checked.as_json() | {"anchors_cut_off": kept.cut_off}
            if file is not None:
                found["exported"] = export(Pool(store, name).rows(), file)
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        print_replay(found)
    return bool(found["agrees"])


def _refuse_no_notes(store: Store, name: str, anchors: str) -> None:
    """Nothing compared is not everything agreed. That there is no such pool is for the replay to say."""
    if store.has(name):
        raise ValueError(
            f"anchors: {shown(anchors)} holds no note of {name!r}, "
            "expected the place that `statepool anchor` or `serve --anchor` noted this store's pools at"
        )


def _read_hash(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not fullmatch("[0-9a-fA-F]{64}", text):
        raise ValueError(
            f"expect: is {text[:70]!r}, expected the whole hash of an event as `replay` prints it, "
            "64 hexadecimal digits"
        )
    return bytes.fromhex(text)


def print_replay(found: dict[str, Any]) -> None:
    """In words."""
    print(f"{found['pool']}: {found['events']} events, {found['decisions']} decisions")
    if found["snapshot_at"]:
        print(f"stored state after event {found['snapshot_at']} compared")
    if found["redrawn"]:
        print(f"{found['redrawn']} decisions drawn again")
    earlier = found["not_redrawn"] - found["without_rows"]
    if earlier:
        print(f"{earlier} decisions of an earlier release were not drawn again")
    if found["without_rows"]:
        print(f"{found['without_rows']} decisions were not drawn again: the rows of their requests were not kept")
    if found["rule_since"] > 1:
        print(f"the rule of this release plays from event {found['rule_since']} on")
    if "exported" in found:
        print(f"{found['exported']} rows exported")
    if found["forgotten"]:
        print(f"{found['forgotten']} events were erased, as the journal says")
    if found["anchors"]:
        print(f"{found['anchors']} notes of the chain, kept elsewhere, say the same")
    if found["anchors_cut_off"]:
        print(f"{found['anchors_cut_off']} lines of those notes were cut off while they were written, and say nothing")
    for fault in found["faults"][:SHOWN]:
        print(f"FAULT: {fault}")
    if len(found["faults"]) > SHOWN:
        print(f"… and {len(found['faults']) - SHOWN} more")
    print(f"sure up to event {found['sure_until']} of {found['last_at']}, whose hash is {found['last_hash']}")
    print(_verdict(found))


def _verdict(found: dict[str, Any]) -> str:
    if found["agrees"] is None:
        return (
            f"cannot tell: everything agrees, but {found['erased_since_noted']} events were erased after the latest of "
            "those notes, and nobody but who erased them vouches for the states and losses that are left of them; if "
            "that was you, note the chain again"
        )
    return "everything agrees" if found["agrees"] else "the journal and what is stored do NOT agree"
