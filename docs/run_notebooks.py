"""Run the notebooks, each in a fresh kernel.

    python docs/run_notebooks.py [NAME …]    run all or some, and store what they print and draw
    python docs/run_notebooks.py --check     run all, and say where they print something else than is stored

`make docs` checks. Pictures are drawn again and not compared, since fonts differ from machine to machine.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from notebook_pages import FOLDER
from traitlets.config import Config

ROOT = Path(__file__).parents[1]
MOST_SECONDS = 300
"""For one cell; far more than any needs, so that a cell that hangs fails."""
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs, run in a folder that holds the examples; `!statepool` is this one."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "examples").symlink_to(ROOT / "examples")
        # Through files: over ports a kernel warns that others could listen.
        through = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        NotebookClient(
            notebook, config=through, timeout=MOST_SECONDS, record_timing=False, coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        ).execute()  # fmt: skip
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def said(notebook: dict[str, Any]) -> list[list[str]]:
    """What each cell prints or shows, as text."""
    cells = [cell.get("outputs", []) for cell in notebook["cells"]]
    return [[_text(output) for output in outputs] for outputs in cells]


def _text(output: dict[str, Any]) -> str:
    """A picture's text is the address of an object, which is another in every run."""
    data = output.get("data", {})
    return "a picture" if "image/png" in data else "".join(data.get("text/plain", output.get("text", "")))


def check() -> list[str]:
    """A sentence for each notebook that fails, or says something else than is stored."""
    faults = []
    for path in sorted(FOLDER.glob("*.ipynb")):
        stored = said(json.loads(path.read_text(encoding="utf-8")))
        try:
            found = said(run(path))
        except CellExecutionError as error:
            faults.append(f"{path.name}: a cell raises {error.ename}: {error.evalue}")
            continue
        faults += [
            f"{path.name}: cell {number} says {now}, expected {then} (python docs/run_notebooks.py stores it)"
            for number, (now, then) in enumerate(zip(found, stored, strict=True))
            if now != then
        ]
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        if faults := check():
            raise SystemExit("\n".join(faults))
        return
    for path in [FOLDER / f"{name}.ipynb" for name in options.names] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
