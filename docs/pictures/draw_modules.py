"""Draw the modules of the package from its import graph, and list them in docs/architecture.md.

`python docs/pictures/draw_modules.py` writes both; a test runs it and compares all but the numbers of lines. Rows are
the layers that `make check` enforces (pyproject.toml); an arrow is an import that no longer way explains.
"""

import ast
import tomllib
from pathlib import Path

import grimp
from draw import Picture

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "statepool"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- modules: written by docs/pictures/draw_modules.py -->\n", "<!-- end of modules -->\n"
WIDTH, ROW, BOX = 1180, 66, 150
ASIDE = (30, -260, 270, -70)
"""Where a row has one module, by turns: so that few arrows pass behind one."""
GROUPS = {
    "people": ("__main__", "cli", "client", "testing", "commands"),
    "answers": ("audit", "studies", "report"),
    "service": ("live",),
    "learning": ("grouping", "guarantees", "comparison", "engine", "exact_run", "probes", "learners", "families"),
}
COLOURS = {"people": "amber", "answers": "blue", "service": "green", "learning": "vermillion"}


def layers() -> list[list[str]]:
    """The rows, from what people call down to what everything stands on."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [layer.split(" | ") for layer in contract["layers"] if layer != "__main__"]


def imports(names: list[str]) -> dict[str, set[str]]:
    """Who imports whom, whole packages taken as one."""
    graph = grimp.build_graph("statepool", exclude_type_checking_imports=True, cache_dir=None)
    of: dict[str, set[str]] = {name: set() for name in names}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = [each.split(".")[1] if "." in each else "" for each in (module, imported)]
            if pair[0] in of and pair[1] in of and pair[0] != pair[1]:
                of[pair[0]].add(pair[1])
    return of


def shortest(of: dict[str, set[str]], order: list[str]) -> dict[str, set[str]]:
    """Without the imports that a longer way explains; `order`: nobody imports from one before."""
    place = {name: i for i, name in enumerate(order)}
    below: dict[str, set[str]] = {}
    kept: dict[str, set[str]] = {}
    for name in reversed(order):
        down = {each for each in of[name] if place[each] > place[name]}
        kept[name] = {each for each in down if not any(each in below[other] for other in down if other != each)}
        below[name] = down.union(*(below[each] for each in down))
    return kept


def what_it_is(name: str) -> str:
    """The first sentence of a module's docstring."""
    path = SOURCES / name / "__init__.py" if (SOURCES / name).is_dir() else SOURCES / f"{name}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def n_lines(name: str) -> int:
    files = (SOURCES / name).rglob("*.py") if (SOURCES / name).is_dir() else [SOURCES / f"{name}.py"]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def colour_of(name: str) -> str:
    return next((COLOURS[group] for group, members in GROUPS.items() if name in members), "muted")


def draw(rows: list[list[str]], arrows: dict[str, set[str]]) -> Picture:
    picture = Picture(
        "modules", WIDTH, ROW * len(rows) + 20, "The modules of statepool, in layers; arrows are imports, downwards"
    )
    middle = {
        name: (WIDTH * (i + 1) / (len(row) + 1) + (ASIDE[level % 4] if len(row) == 1 else 0), 24 + ROW * level)
        for level, row in enumerate(rows)
        for i, name in enumerate(row)
    }
    for name, targets in arrows.items():
        for target in sorted(targets):
            (x1, y1), (x2, y2) = middle[name], middle[target]
            picture.line_down(x1, y1 + 18, x2, y2 - 18, colour_of(name))
    for name, (x, y) in middle.items():
        picture.box(x - BOX / 2, y - 18, BOX, 36, name, colour_of(name))
    return picture


def table(rows: list[list[str]]) -> str:
    lines = ["| module | what it is | lines |", "|---|---|---|"]
    lines += [f"| `{name}` | {what_it_is(name)} | {n_lines(name)} |" for row in rows for name in row]
    return "\n".join(lines) + "\n"


def main(folder: Path = Path(__file__).parent, page: Path = PAGE) -> None:
    rows = layers()
    order = [name for row in rows for name in row]
    draw(rows, shortest(imports(order), order)).write(folder)
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(before + BEGIN + "\n" + table(rows) + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
