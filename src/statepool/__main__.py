"""`python -m statepool` is the command `statepool`."""

from statepool.cli import main

main()
