"""Run the notebooks, build the site with mkdocs, strictly; then look at what came out. `make docs` runs this."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import run_notebooks
from public_names import MODULES, home_of, public_names

ROOT = Path(__file__).parent.parent
SITE = ROOT / "site"
MOST_BYTES = 15 << 20
SILENT = {"pre", "code", "script", "style"}


STRAY = re.compile(r"\[[^\[\]()]* \(")
"""A bracket that a link lost its other half of."""


class Links(HTMLParser):
    """What a page points to, the places in it that can be pointed to, and its words that are no code."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.words: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.places |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"] or "")
        loaded = given.get("src") if tag in ("img", "script") else given.get("href") if tag == "link" else None
        if loaded:
            self.loaded.append(loaded)
        self._silent += tag in SILENT

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in SILENT

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)


def faults_of(site: Path) -> list[str]:
    """Links that lead nowhere, and what a page would load from a network."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    faults = []
    for path, links in pages.items():
        faults += [
            f"{path.relative_to(site)} says {found!r}, half a link" for found in STRAY.findall("".join(links.words))
        ]
        for target in links.targets + links.loaded:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in links.loaded and not target.startswith("data:"):
                    faults.append(f"{path.relative_to(site)} loads {target}")
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                faults.append(f"{path.relative_to(site)} links to {target}, which is not there")
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].places | {"__top"}:
                faults.append(f"{path.relative_to(site)} links to {target}, which has no such place")
    return faults


def undocumented(site: Path) -> list[str]:
    """Public names that no page has."""
    import statepool as sp

    places = set().union(*(_read(path).places for path in site.rglob("*.html")))
    modules = [sp, *(getattr(sp, name) for name in (*MODULES, "client", "testing"))]
    homes = {f"{m.__name__}.{n}": home_of(getattr(m, n), m, n) for m in modules for n in public_names(m)}
    return [f"{name} is public and on no page" for name, home in homes.items() if not {name, home} & places]


def _read(path: Path) -> Links:
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


def main() -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--quiet"]
    # The theme tells of its successor on every build, which is no fault of a page.
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    faults = run_notebooks.check() + faults_of(SITE) + undocumented(SITE)
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        faults.append(f"the site has {size >> 20} MB, expected at most {MOST_BYTES >> 20}")
    if faults:
        raise SystemExit("\n".join(faults))
    print(f"{SITE.relative_to(ROOT)}/index.html: {len(list(SITE.rglob('*.html')))} pages, {size / (1 << 20):.1f} MB")


if __name__ == "__main__":
    main()
