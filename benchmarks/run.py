"""All benchmarks in one run: a table of ratios, and the same as JSON."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

import rivals
import speed
import startup
from rows import Row


def measure() -> list[Row]:
    instance = speed.funnel()
    learners, engine_round = speed.every_learner(instance)
    return [
        speed.against_numpy(instance), speed.against_c(instance), *speed.compiling(), *learners,
        *speed.with_contexts(engine_round), *rivals.rows(instance, engine_round), startup.row(),
    ]  # fmt: skip


def tabulate(rows: list[Row]) -> Table:
    table = Table(title="statepool: ratios measured in one run (K=200, d=50 unless said)")
    for heading in ("what", "measured", "target", "met", "note"):
        table.add_column(heading, justify="right" if heading == "measured" else "left")
    for row in rows:
        table.add_row(row.name, row.shown, row.target, {True: "yes", False: "NO", None: ""}[row.met], row.note)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    out = parser.parse_args().out
    rows = measure()
    Console(width=100).print(tabulate(rows))
    records = [{**asdict(row), "target": row.target, "met": row.met} for row in rows]
    out.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
