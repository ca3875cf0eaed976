"""`statepool whatif`: what a log would have been worth under other policies."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from statepool.audit import what_if
from statepool.audit.evaluate import Estimate, WhatIf, cautions_of
from statepool.commands.progress import working
from statepool.commands.tables import make_table
from statepool.frames import terminal_width


def run(log: str, policies: Sequence[str], unit_name: str, as_json: bool, **settings: Any) -> None:
    """Estimate with the settings of `what_if`, and print a table or JSON."""
    with working(f"evaluating policies on {log}"):
        found = what_if(log, policies, **settings)
    if as_json:
        print(json.dumps([_plain(one) for one in found], indent=1))
    else:
        print_what_if(found, unit_name)


def _plain(one: WhatIf) -> dict[str, Any]:
    return {name: dict(vars(value)) if isinstance(value, Estimate) else value for name, value in vars(one).items()}


def print_what_if(found: Sequence[WhatIf], unit_name: str, console: Console | None = None) -> None:
    console = console or Console(width=terminal_width())
    title = f"Worth of a decision, in {unit_name}; logged: {found[0].logged:.4g} over {found[0].outcomes} outcomes"
    headings = ("policy", "through the states", "doubly robust", "inverse propensity", "bias at most")
    table = make_table(escape(title), headings)
    for one in found:
        shown = [f"{e.value:.4g} ({e.lower:.4g} to {e.upper:.4g})" for e in (one.pooled, one.robust, one.plain)]
        table.add_row(escape(one.policy), *shown, f"{one.bias:.2g}" + (" !" if one.biased else ""))
    console.print(table)
    for sentence in cautions_of(found):
        console.print(escape(sentence), highlight=False)
