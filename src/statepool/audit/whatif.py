"""What would the log have been worth under another play? From a log and the names of plays to estimates."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statepool.audit.effects import estimate_effects
from statepool.audit.export import export_rows
from statepool.audit.first_look import Looked, look
from statepool.audit.map import estimate_map
from statepool.audit.maturity import read_missing
from statepool.audit.offpolicy import Evidence, WhatIf, estimate_play
from statepool.audit.policies import read_policy
from statepool.audit.sources import open_log
from statepool.audit.sufficiency import sufficiency_test
from statepool.checks import check_number


def what_if(
    log: Any, policies: Sequence[str], *, columns: dict[str, str | None] | None = None, table: str | None = None,
    reward: bool | None = None, rescale: bool = False, window: Any = None, missing: Any = None, level: float = 0.95,
    seed: int = 0, export: Path | str | None = None,
) -> list[WhatIf]:  # fmt: skip
    """Estimate what the log would have been worth under each policy; see `policies` for how they are named.

    `columns` names columns by their part, the rest is as in `audit_log`; `export` writes the rows as off-policy
    packages read them.
    """
    check_number(level, "level", 0.5, 0.9999)
    if not policies:
        raise ValueError("policy: none is named, expected an action, best, uniform, logged, or a pool's address")
    blank = read_missing(missing)
    opened = open_log(log, columns or {}, reward, blank if isinstance(blank, float) else None, table)
    try:
        looked = look(opened, window, blank is not None, rescale, seed)
        seen = _see(looked, seed)
        found = [estimate_play(seen, read_policy(policy, seen), policy, level) for policy in policies]
        if export is not None:
            export_rows(opened.engine, seen.counts, seen.unit, Path(export))
    finally:
        opened.engine.close()
    return found


def _see(looked: Looked, seed: int) -> Evidence:
    counts = looked.counts
    if not counts.has_outcomes:
        raise ValueError("log: has no outcome that is old enough, expected some to estimate from")
    found = sufficiency_test(looked.rows, counts.n_actions, counts.n_states, seed)
    return Evidence(counts, looked.unit, found, estimate_effects(counts, estimate_map(counts), found, seed))


def cautions_of(found: Sequence[WhatIf]) -> list[str]:
    """What to make of the estimates."""
    said = []
    if not found[0].exact:
        said.append(
            "The log has no propensities (--propensity): the actions' shares stand in for them, which is right if "
            "actions were not chosen for their circumstances."
        )
    for one in found:
        if one.biased:
            said.append(
                f"{one.policy}: direct effects were found that may bias the pooled value by up to {one.bias:.2g}, more "
                f"than its error of {one.pooled.error:.2g}: believe the doubly robust one."
            )
    return said
