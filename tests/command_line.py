"""The command `statepool`, called in this process: a process of its own takes a second to start.

What only a process can show (signals, kills, an installed program, modules that are not there) starts one.
"""

import contextlib
import io
import subprocess
import sys
import threading

from statepool.cli import main


def statepool(*arguments, cwd="."):
    """Run a command to its end: how it ended, what it printed, what it complained of."""
    out, complaints = io.StringIO(), io.StringIO()
    theirs, sys.argv = sys.argv, ["statepool", *map(str, arguments)]
    code, before = 0, set(threading.enumerate())
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = theirs
    left = [thread.name for thread in threading.enumerate() if thread not in before]
    assert not left, f"{arguments} left threads running: {left}"
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), complaints.getvalue())
