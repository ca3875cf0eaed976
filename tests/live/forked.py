"""Children of this process by a plain fork, each with its own record of what it was told."""

import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress

PATIENCE = 20.0


class Child:
    """A fork that does `work` and hands back what that returns; no clean-up of the parent's runs in it."""

    def __init__(self, work):
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writing)
            return
        code = 1
        try:
            os.write(writing, json.dumps(work()).encode())
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)

    def answer(self):
        """What it handed back; None if it failed, and "hangs" if it had to be killed."""
        deadline = time.monotonic() + PATIENCE
        while True:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        if not ended:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        with os.fdopen(self._reading) as pipe:
            said = pipe.read()
        return "hangs" if not ended else json.loads(said) if status == 0 else None


def acknowledged_by_all(pool, children=4, each=25):
    """Children and parent decide at once with one pool, opened before; who was told which tickets."""
    started = [
        Child(lambda who=who: [pool.decide(f"child {who} {n}").ticket for n in range(each)]) for who in range(children)
    ]
    mine = [pool.decide(f"parent {n}").ticket for n in range(each)]
    return [mine, *(child.answer() for child in started)]
