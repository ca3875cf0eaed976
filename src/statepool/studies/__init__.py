"""The studies of the paper, and ours. Adding one is a module that is imported here, and its words in texts.toml."""

from statepool.checks import unknown_name
from statepool.studies import bounds, estimated_maps, funnel, groups, neighbours, overlap, self_tuned, study
from statepool.studies.study import Study

STUDIES: dict[str, Study] = {name: study.STUDIES[name] for name in study.texts()}
"""By name, in the order of the report."""


def find(name: str) -> Study:
    """The study of a name."""
    if name not in STUDIES:
        raise ValueError(unknown_name("study", name, STUDIES))
    return STUDIES[name]


__all__ = [
    "STUDIES", "Study", "bounds", "estimated_maps", "find", "funnel", "groups", "neighbours", "overlap", "self_tuned",
]  # fmt: skip
