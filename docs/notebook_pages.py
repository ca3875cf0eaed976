"""Notebooks as pages of the site: what is committed, cell by cell, as Markdown with its pictures beside it."""

import base64
import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
LOOKS = re.compile(r'<style.*?</style>\s*| border="1"| class="dataframe"| style="[^"]*"', re.DOTALL)
"""What pandas says of the looks of its tables; the site has its own."""


def page_of(path: Path) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook, and its pictures by name."""
    pictures: dict[str, bytes] = {}
    parts = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source.replace(".ipynb)", ".md)"))
            continue
        parts.append(f"```python\n{source}\n```")
        for place, output in enumerate(cell["outputs"]):
            parts.append(_shown(output, f"{path.stem}-{number}-{place}.png", pictures))
    parts.append(f"[This page as a notebook]({path.name}), to run and to change.")
    return "\n\n".join(parts) + "\n", pictures


def _shown(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """What a cell printed or drew: a picture before a table, a table before text."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        pictures[name] = base64.b64decode("".join(data["image/png"]))
        return f"![What this cell draws]({name}){{ .drawn }}"
    if "text/html" in data:
        return f'<div class="answer">\n{LOOKS.sub("", "".join(data["text/html"]))}\n</div>'
    return f"```{{ .text .answer }}\n{''.join(data['text/plain']).rstrip()}\n```"
