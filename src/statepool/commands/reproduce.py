"""`statepool reproduce`: run studies, and set every published number beside ours."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console

from statepool.commands.progress import say_compiling
from statepool.frames import terminal_width
from statepool.studies import STUDIES, find
from statepool.studies.cells import CellStore
from statepool.studies.published import records_of
from statepool.studies.report import write_report
from statepool.studies.runner import ALL_SEEDS, ClusterExecutor, LocalExecutor, run_studies
from statepool.studies.terminal import Bars, print_study, print_summary

QUICK_SEEDS = 2
LONGEST_SUFFIX = 80
"""Of a file name that lists its studies."""


def run(studies: list[str], quick: bool, jobs: int, cluster: str | None, out: Path, as_json: bool) -> None:
    """Run the studies named, or all of the paper's; write the records and the report, and print the tables."""
    if jobs == 0 or jobs < -1:
        raise ValueError(f"jobs: is {jobs}, expected a positive number, or -1 for one a core")
    chosen = [find(name) for name in studies or [s.name for s in STUDIES.values() if not s.beyond]]
    store = CellStore(out / "cells")
    progress = Console(stderr=True)
    bars = Bars(progress)
    say_compiling(progress)
    with ClusterExecutor(cluster) if cluster else nullcontext(LocalExecutor(jobs)) as execute, bars.progress:
        results = run_studies(chosen, execute, store, bars, QUICK_SEEDS if quick else ALL_SEEDS)
    if store.damaged:
        print(f"{store.damaged} damaged entries in {store.folder} were computed again", file=sys.stderr)
    tables = {study.name: study.tables(results[study.name]) for study in chosen}
    records = {study.name: records_of(study, tables[study.name]) for study in chosen}
    every = [record for found in records.values() for record in found]
    text = json.dumps([record.as_json() for record in every], indent=1)
    # Some studies, or fewer seeds, never replace the report of all.
    suffix = "-".join(["", *dict.fromkeys(studies), *(["quick"] if quick else [])])[:LONGEST_SUFFIX]
    (out / f"records{suffix}.json").write_text(text)
    report = write_report(out, chosen, tables, records, results, quick, f"report{suffix}")
    if as_json:
        print(text)
        return
    console = Console(width=terminal_width())
    for study in chosen:
        print_study(console, study, tables[study.name], records[study.name], quick)
    print_summary(console, every, quick)
    console.print(f"Report: {report}")
