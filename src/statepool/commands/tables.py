"""Tables on the terminal, titled at the left: names first, numbers to the right; nothing is cut off."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table


def make_table(title: str, headings: Sequence[str], n_names: int = 1, **more: Any) -> Table:
    """Without rows; the first columns hold names."""
    table = Table(title=title, title_justify="left", caption_justify="left", **more)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i < n_names else "right", overflow="fold")
    return table
