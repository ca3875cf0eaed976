"""The audit's report: one HTML file with its figures inside, in the style of the studies' report."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from statepool.audit.report.figures import draw_figures
from statepool.audit.report.page import page_of

if TYPE_CHECKING:
    from statepool.audit.audit import Audit


def write_audit(audit: "Audit", out: Path) -> Path:
    """Write the report into the folder `out`, or as that .html file, and AUDIT.json beside it; the report's path."""
    path = out if out.suffix.lower() == ".html" else out / "report.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_of(audit, draw_figures(audit)), encoding="utf-8")
        (path.parent / "AUDIT.json").write_text(json.dumps(audit.document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ValueError(f"out: cannot write {path} ({error.strerror or error})") from None
    return path


__all__ = ["write_audit"]
