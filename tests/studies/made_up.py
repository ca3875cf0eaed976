"""Results that were not run: numbers made from their names, so that every table and figure can be had in seconds."""

import zlib

import numpy as np

from statepool.checks import Floats
from statepool.studies import STUDIES
from statepool.studies.report import Record, records_of
from statepool.studies.study import Results, Study, Table


class MadeUp(Results):
    """Answers to any sweep, cell and name, with as many seeds as asked for."""

    def __init__(self, seeds: int = 3) -> None:
        super().__init__()
        self.seeds = seeds

    def of(self, sweep: str, cell: str, name: str) -> Floats:
        rng = np.random.default_rng(zlib.crc32(f"{sweep}|{cell}|{name}".encode()))
        return rng.uniform(20, 900) * rng.uniform(0.9, 1.1, self.seeds)

    def first(self, sweep: str, cell: str, name: str) -> float:
        return float(self.of(sweep, cell, name)[0])


def made_up(
    names: list[str] | None = None, seeds: int = 3
) -> tuple[list[Study], dict[str, list[Table]], dict[str, list[Record]], dict[str, Results]]:
    """What a run of studies hands to the report."""
    studies = [STUDIES[name] for name in names or STUDIES]
    results: dict[str, Results] = {study.name: MadeUp(seeds) for study in studies}
    tables = {study.name: study.tables(results[study.name]) for study in studies}
    return studies, tables, {study.name: records_of(study, tables[study.name]) for study in studies}, results
