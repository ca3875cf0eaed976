"""What the site says of Python, the command line, HTTP and settings is read from the code as the site is built.

Notebooks become pages, too.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
from http_page import range_of, write_page
from mkdocs.structure.files import File, Files
from notebook_pages import FOLDER, page_of
from public_names import MODULES, home_of, public_names

ROOT = Path(__file__).parent.parent
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+((?:examples|benchmarks|src|tests)[^)]*)\)")
"""A link to a file of the repository: what it says, and the file."""
BUILT = re.compile(r"`site/([\w/-]+)\.html`")
"""A page that only the site has, as pages name it that are also read in the repository."""


def on_files(files: Files, config: Any) -> Files:
    for path, write in PAGES.items():
        files.append(File.generated(config, path, content=write()))
    for path in sorted(FOLDER.glob("*.ipynb")):
        text, pictures = page_of(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Make the page one of a site that stands alone.

    Notebooks are pages; files of the repository that are not are named instead of linked; pages that only the site
    has, which the source names by their file, are linked.
    """
    if page.file.src_uri.startswith("notebooks/"):
        return markdown
    if page.file.src_uri == "studies.md":
        markdown += study_figures()
    markdown = markdown.replace(".ipynb)", ".md)")
    up = "../" * page.file.src_uri.count("/")
    markdown = BUILT.sub(lambda match: f"[{TITLES[f'{match[1]}.md']}]({up}{match[1]}.md)", markdown)
    return OUTSIDE.sub(lambda match: _named(match[1], match[2]), markdown)


def _named(text: str, file: str) -> str:
    """A file in the words of its link, which may be its name already."""
    return f"`{file}`" if text.strip("`") in (file, file.rpartition("/")[2]) else f"{text} (`{file}`)"


def on_post_page(output: str, page: Any, config: Any) -> str:
    """What lets the search work from disk is taken from beside the page, not from a network."""
    return output.replace(
        "https://unpkg.com/iframe-worker/shim", "../" * page.url.count("/") + "assets/iframe-worker.js"
    )


def on_post_build(config: Any) -> None:
    """A page for addresses that are not there is a server's, and its links are not a disk's."""
    (Path(config["site_dir"]) / "404.html").unlink(missing_ok=True)


def command_line() -> str:
    """Every command with its options, from the declarations that the command itself is made of."""
    from typer.main import get_command

    from statepool.cli import app

    root: Any = get_command(app)
    lines = ["# Command line", "", root.help or "", "", "`statepool --version` says which version this is.", ""]
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        for title, each in ({f"{name} {sub}": one for sub, one in inner.items()} if inner else {name: command}).items():
            lines += [f"## statepool {title}", "", each.help or "", "", "| given | what it is |", "|---|---|"]
            lines += [f"| `{_spelling(p)}` | {_cell(getattr(p, 'help', '') or '')}{_default(p)} |" for p in each.params]
            lines.append("")
    return "\n".join(lines)


def _spelling(parameter: Any) -> str:
    return (
        " / ".join([*parameter.opts, *parameter.secondary_opts])
        if parameter.opts[0].startswith("-")
        else parameter.name.upper()
    )


def _default(parameter: Any) -> str:
    shown = parameter.default
    return "" if shown in (None, False, ...) or callable(shown) else f" Default: `{shown}`."


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def http() -> str:
    """The OpenAPI document in words, and the settings of a pool."""
    from statepool.live.service.routes import document

    return write_page(document()) + "\n" + settings()


def settings() -> str:
    """The settings of a pool: fields, defaults, what each does, and its range."""
    from statepool.live.settings import Settings

    lines = [
        "## Settings of a pool",
        "",
        "Given to `Pool.open(…, holdout=0.1)`, `pool.change(…)`, `PUT` and `PATCH /v1/pools/{name}`.",
        "None is null over HTTP.",
        "",
    ]
    lines += ["| setting | default | what it does |", "|---|---|---|"]
    properties = msgspec.json.schema_components([Settings])[1]["Settings"]["properties"]
    for name, default in zip(Settings.__struct_fields__, Settings.__struct_defaults__, strict=True):
        field = properties[name] | {"default": None}  # it has a column of its own
        lines.append(f"| `{name}` | `{default}` | {_cell(field['description'])}{range_of(field)} |")
    return "\n".join(lines) + "\n"


SECTIONS = {
    "Problems, runs and comparisons": ("Instance", "simulate", "Run", "compare", "Comparison"),
    "Live": ("Pool",),
    "The audit": ("audit_log", "Audit"),
}


BESIDE_LEARNERS = (
    "statepool.learners.player.Player", "statepool.learners.player.PlayedRound", "statepool.learners.contract.Problem",
    "statepool.learners.contract.add_rule",
)  # fmt: skip
"""What is given to a learner, and what it gives."""


def python() -> str:
    """Every public name, each from its docstring."""
    import statepool as sp

    sections = dict(SECTIONS)
    said = {name for names in sections.values() for name in names}
    sections["Learners"] = tuple(name for name in sp.__all__ if name[0].isupper() and name not in said)
    public = "everything here is public ([Versions](../explanation/design.md#versions))"
    lines = ["# Python", "", f"`import statepool as sp`; {public}.", ""]
    for title, names in sections.items():
        lines += [f"## {title}", ""]
        if title == "Learners":
            lines += [
                "What each does, side by side: [Learners](../learners.md).",
                "",
                "::: statepool.learners.Learner",
                "",
            ]
            lines += [line for name in BESIDE_LEARNERS for line in (f"::: {name}", "")]
        lines += [line for name in names for line in (f"::: {home_of(getattr(sp, name))}", "")]
    for module in MODULES:
        found = getattr(sp, module)
        public = public_names(found)
        lines += [f"## statepool.{module}", "", (found.__doc__ or "").partition("\n\n")[0], ""]
        lines += [line for name in public for line in (f"::: {home_of(getattr(found, name), found, name)}", "")]
    return "\n".join(lines) + OTHER_MODULES


OTHER_MODULES = """
## statepool.client

`pip install ".[client]"` installs httpx, and the client imports nothing else of this package.

::: statepool.client
    options:
      members: [Client, RemotePool, AsyncClient, AsyncRemotePool, Decision, ClientError, Conflict, NotFound, NotAllowed, Invalid, Unavailable]
      inherited_members: true
      show_root_heading: false

## statepool.testing

::: statepool.testing
    options:
      members: [Check, ContractError, check_learner, learner_checks, check_family]
      show_root_heading: false
"""  # noqa: E501


def study_figures() -> str:
    """What each study of the paper asks and finds, with the report's figures."""
    from statepool.studies import STUDIES

    lines = ["", "## One by one", ""]
    lines += ["The figures are those of the report of `make reproduce`, which also has every table.", ""]
    figures = [figure for study in STUDIES.values() if not study.beyond for figure in study.figures]
    lines += [line for figure in figures if figure.up_front for line in _figure(figure)]
    for study in STUDIES.values():
        if study.beyond:
            continue
        lines += [f"### {study.number}. {study.title}" if study.number.isdigit() else f"### {study.title}", ""]
        lines += [study.asks, "", f"**Seen.** {study.seen}", "", f"**Limits.** {study.limits}", ""]
        lines += [f"`statepool reproduce {study.name}`; {study.source}.", ""]
        lines += [line for figure in study.figures if not figure.up_front for line in _figure(figure)]
    return "\n".join(lines)


def _figure(figure: Any) -> list[str]:
    """A picture that leads to itself: on a phone it is small, and a drawing can be enlarged."""
    path = f"figures/{figure.name}.svg"
    shown = f"[![{figure.title}]({path}){{ .drawn }}]({path})"
    return [shown, "", f"*{figure.title}.* {figure.caption}", ""]


def benchmarks() -> str:
    """The README of the benchmarks."""
    return (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").replace("](../docs/", "](")


TITLES = {
    "reference/python.md": "Python",
    "reference/cli.md": "Command line",
    "reference/http.md": "HTTP",
}
"""What a link to a page is called that only the site has."""

PAGES = {
    "reference/python.md": python, "reference/cli.md": command_line, "reference/http.md": http,
    "benchmarks.md": benchmarks,
}  # fmt: skip
