"""The application of docs/how-to/fastapi.md, on SQLite and on PostgreSQL."""

import re
import sys
import types
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "fastapi.md"


def test_the_page_runs_on_both_databases(place, server, monkeypatch, capsys):
    monkeypatch.setenv("STORE", server.emptied() if place.url.startswith("postgresql") else place.url)
    shop = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", shop)
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), shop.__dict__)
    assert capsys.readouterr().out == "True 409 404\n"
