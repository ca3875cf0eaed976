"""A process of its own at a pool: it opens, says so, and does what it is told when it is told.

Standard input: a line of calls, [["decide", ticket], ["observe", ticket, state], ["resolve", ticket, loss], …], and a
line when to begin; standard output: "ready", then a line with the answers; and again.
"""

import json
import subprocess
import sys
import threading


def do(pool, name, *arguments):
    answer = getattr(pool, name)(*arguments)
    return None if answer is None else [answer.ticket, answer.action, answer.probability]


def take_turns(pool, calls, n_threads):
    """The answers of calls that several threads make."""
    answers = [None] * len(calls)

    def take(first):
        for place in range(first, len(calls), n_threads):
            try:
                answers[place] = do(pool, *calls[place])
            except Exception as error:
                answers[place] = f"{type(error).__name__}: {error}"

    threads = [threading.Thread(target=take, args=(first,)) for first in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def work(url, name, n_threads):
    import statepool as sp

    pool = sp.Pool.open(url, name)
    pool._fold()
    for line in sys.stdin:
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(take_turns(pool, json.loads(line), n_threads)), flush=True)


class Team:
    """Processes at one pool."""

    def __init__(self, url, name, size, n_threads):
        command = [sys.executable, "-W", "error", __file__, url, name, str(n_threads)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.processes = [subprocess.Popen(command, **pipes) for _ in range(size)]

    def do(self, shares):
        """Each process its share of calls, all at once; the answers of all."""
        for process, calls in zip(self.processes, shares, strict=True):
            self._say(process, json.dumps(calls))
        assert [process.stdout.readline() for process in self.processes] == ["ready\n"] * len(shares)
        for process in self.processes:
            self._say(process, "go")
        return [answer for process in self.processes for answer in json.loads(process.stdout.readline())]

    def _say(self, process, line):
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.communicate()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
