"""Run the notebooks, each in a fresh kernel, and store what they print and draw.

    python docs/run_notebooks.py [NAME …]    all by default

`make soak` checks that they print what is stored: numbers may differ in their last digits on another processor.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    for path in [FOLDER / f"{name}.ipynb" for name in options.names] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
