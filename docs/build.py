"""Build the site with mkdocs, strictly; then look at what came out. `make docs` runs this."""

import os
import re
import subprocess
import sys
from pathlib import Path

from public_names import MODULES, home_of, public_names

ROOT = Path(__file__).parent.parent
SITE = ROOT / "site"
MOST_BYTES = 15 << 20
LOADED = re.compile(r'<(?:img|script|link)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]*)"')
PLACE = re.compile(r'\bid="([^"]+)"')


def faults_of(site: Path) -> list[str]:
    """What a page would load from a network; mkdocs itself warns of links that lead nowhere."""
    pages = {path.relative_to(site): path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    return [f"{name} loads {target}" for name, text in pages.items() for target in LOADED.findall(text)]


def undocumented(site: Path) -> list[str]:
    """Public names that no page has."""
    import statepool as sp

    places = {place for path in site.rglob("*.html") for place in PLACE.findall(path.read_text(encoding="utf-8"))}
    modules = [sp, *(getattr(sp, name) for name in (*MODULES, "client", "testing"))]
    homes = {f"{m.__name__}.{n}": home_of(getattr(m, n), m, n) for m in modules for n in public_names(m)}
    return [f"{name} is public and on no page" for name, home in homes.items() if not {name, home} & places]


def main() -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--quiet"]
    # The theme announces its successor on every build, which is no fault of a page.
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    faults = faults_of(SITE) + undocumented(SITE)
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        faults.append(f"the site has {size >> 20} MB, expected at most {MOST_BYTES >> 20}")
    if faults:
        raise SystemExit("\n".join(faults))
    print(f"{SITE.relative_to(ROOT)}/index.html: {len(list(SITE.rglob('*.html')))} pages, {size / (1 << 20):.1f} MB")


if __name__ == "__main__":
    main()
