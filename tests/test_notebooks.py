"""Every notebook runs, says what is stored in it (in the soak), and is on the site."""

import ast
import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MOST_BYTES = 100_000


def run_cell(source, names):
    """What a cell prints, and the words of its last expression."""
    lines = source.splitlines()
    for line in lines:
        if line.startswith("!statepool "):
            command = f"{sys.executable} -m statepool {line.removeprefix('!statepool ')}"
            subprocess.run(command, shell=True, check=True)
    tree = ast.parse("\n".join(line for line in lines if not line.startswith("!")))
    last = tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last), "cell", "eval"), names)
    return printed.getvalue(), [] if shown is None or source.endswith(";") else repr(shown).split()


def stored(cell):
    """The same as the notebook has it; pictures are not compared."""
    printed = "".join("".join(each.get("text", "")) for each in cell["outputs"])
    shown = [each["data"] for each in cell["outputs"] if "data" in each and "image/png" not in each["data"]]
    return printed, "".join("".join(each["text/plain"]) for each in shown).split()  # a notebook breaks long lines


def test_there_are_two():
    assert len(NOTEBOOKS) == 2


@pytest.mark.soak
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_says_what_is_stored(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            assert run_cell("".join(cell["source"]), names) == stored(cell), f"cell {number}"
    pyplot.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small_and_on_the_site(path):
    assert path.stat().st_size < MOST_BYTES
    assert f"notebooks/{path.stem}.md" in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_pools_are_new_in_every_run(path):
    """Notebooks are followed one after another in one folder, and again."""
    cells = json.loads(path.read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert code.count("sqlite:///") == code.count("sqlite:///{tempfile.mkdtemp()}/")
