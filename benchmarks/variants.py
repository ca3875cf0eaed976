"""SelfTuned with one ingredient taken out: its modules, rebuilt with a line replaced, the package left alone."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from statepool import learners
from statepool.learners import Learner

MEMORIES, ALARMS, SAFE, LEARNER = "memories", "alarms", "safe", "self_tuned"
_FORGETTING = "FORGETTING = (1.0, 0.9999, 0.999, 0.99)"

Edit = tuple[str, str, str]
"""Which module, the text there, and what stands in its place."""

WITHOUT: Mapping[str, tuple[Edit, ...]] = {
    "nothing removed": (),
    "memories: one, of everything": ((MEMORIES, _FORGETTING, "FORGETTING = (1.0,)"),),
    "memories: one, .999": ((MEMORIES, _FORGETTING, "FORGETTING = (0.999,)"),),
    "memories: one, .99": ((MEMORIES, _FORGETTING, "FORGETTING = (0.99,)"),),
    "evidence: memories weighted evenly": ((MEMORIES, "= weight * evidence_of(", "= 0.0 * evidence_of("),),
    "evidence that fades": ((MEMORIES, "return exp(TENTH * log(1.0 + t / FIRST))", "return 1.0"),),
    "prior scaled to the delay": (
        (MEMORIES, "prior = exp(max(memories.logs[i] * delay, LOWEST_PRIOR))", "prior = 1.0"),
    ),
    "optimism": ((LEARNER, "OPTIMISM = 0.4", "OPTIMISM = 0.0"),),
    "optimism that counts plays in flight": (
        (MEMORIES, "+= share * memories.played[i, s]", "+= share * memories.counts[i, s]"),
    ),
    "doubt": ((ALARMS, "DOUBT = 2.0", "DOUBT = 1e9"),),
    "guard": ((ALARMS, "GUARD = 3.0", "GUARD = 1e9"),),
    "safe's start on the leader": ((SAFE, "totals[anchor] -= price + log(1.0 - (totals.size - 1) / odds)", "pass"),),
    "safe's cap": (
        (
            SAFE,
            "return min(np.sqrt(2.0 * log(float(n_actions * length)) / cost), SHARE / (e * (delay + 1.0)))",
            "return np.sqrt(log(float(n_actions * length)) / ((0.55 * (width - 1) / SHARE + delay + 1.0) * length))",
        ),
    ),
    "safe, and with it the floor": (
        (SAFE, "SHARE = 1 / 32", "SHARE = 1e-9"),
        (ALARMS, "DOUBT = 2.0", "DOUBT = 1e9"),
        (ALARMS, "GUARD = 3.0", "GUARD = 1e9"),
    ),
}


def build(edits: tuple[Edit, ...], folder: Path) -> Learner:
    """The learner with these edits, its sources written to `folder`, which must be new and must stay."""
    home = Path(str(learners.__file__)).parent
    sources = {module: (home / "parts" / f"{module}.py").read_text() for module in (MEMORIES, ALARMS, SAFE)}
    sources[LEARNER] = (home / f"{LEARNER}.py").read_text()
    for module, old, new in edits:
        if sources[module].count(old) != 1:
            raise ValueError(f"{module}: has {old!r} {sources[module].count(old)} times, expected it once")
        sources[module] = sources[module].replace(old, new)
    # Compiled functions are cached by file: files of their own keep the package's cache clean. Numba tells memories
    # apart by their names: without another name a variant would run the package's code.
    names = {module: f"{folder.name}_{module}" for module in sources}
    text = sources[LEARNER].replace("SelfTunedMemory", f"SelfTunedMemory_{folder.name}")
    for module in (MEMORIES, ALARMS, SAFE):
        text = text.replace(f"statepool.learners.parts.{module}", names[module])
    sources[LEARNER] = text.replace(
        "from statepool.learners.parts import alarms, memories",
        f"import {names[ALARMS]} as alarms\nimport {names[MEMORIES]} as memories",
    )
    built = [_load(names[module], folder / f"{module}.py", text) for module, text in sources.items()]
    return built[-1].SelfTuned()


def _load(name: str, path: Path, text: str) -> ModuleType:
    path.write_text(text)
    module = sys.modules[name] = ModuleType(name)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module
