"""The command `statepool`: which commands there are, and how errors are shown."""

import sys
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from statepool import __version__
from statepool.commands import audit, pools, research, serve
from statepool.extras import how_to_install

COMMANDS = (
    audit.audit, audit.whatif, serve.serve, pools.export, research.reproduce, research.simulate, research.dimension,
    pools.backup, pools.archive, pools.erase, pools.replay,
)  # fmt: skip
SECTIONS = {
    "Use": ("audit", "whatif", "serve", "export"),
    "Research": ("reproduce", "simulate", "dimension"),
    "Administration": ("keys", "backup", "archive", "erase", "replay"),
}


class Sections(TyperGroup):
    """Help that lists commands by section."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(80)) for name in names])


# Help in plain text: rich would take longer than all the rest of the start.
PLAIN: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None}
app = typer.Typer(
    cls=Sections, add_completion=False, pretty_exceptions_enable=False, context_settings={"max_content_width": 100},
    **PLAIN,
)  # fmt: skip
keys = typer.Typer(help="Create, renew, list and drop the API keys of a service.", **PLAIN)
app.add_typer(keys, name="keys")
for _command in COMMANDS:
    app.command()(_command)
keys.command("add")(pools.add_key)
keys.command("renew")(pools.renew_key)
keys.command("list")(pools.list_keys)
keys.command("drop")(pools.drop_key)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"statepool {__version__}")
        raise typer.Exit


@app.callback()
def _statepool(
    version: Annotated[
        bool, Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Bandits for delayed outcomes: audit a log, serve decisions, reproduce the paper."""


def main() -> None:
    """Bad input is one sentence on standard error and exit code 2; never a traceback."""
    try:
        app()
    except SystemExit as stop:
        if stop.code == 130:  # what Typer makes of Ctrl-C
            print("statepool: interrupted; finished work is kept", file=sys.stderr)
        raise
    except (ValueError, ImportError, RuntimeError) as error:
        sentence = how_to_install(error) if isinstance(error, ImportError) else str(error)
        # The class by its name: its module needs the packages of an extra.
        if sentence is None or (isinstance(error, RuntimeError) and type(error).__name__ != "StoreUnavailable"):
            raise
        print(f"statepool: {sentence}", file=sys.stderr)
        sys.exit(2)
