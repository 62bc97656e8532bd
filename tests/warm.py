"""Programs that begin at once: each is forked from a Python that has the imports done.

`warm.Process(words)` is for `subprocess.Popen([sys.executable, *words])`, `warm.run(*words)` for
`subprocess.run`. What is forked is a process of its own, with a session, streams, a folder and an
environment of its own, and it ends as Python does. Not for tests of what an import loads.
"""

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from warm_server import NUMBER

ADDRESS = "REPLAN_TEST_WARM"
"""Names the socket of the server, for all processes of a test run."""

PATIENCE = 60.0
_HERE = Path(__file__).parent
_CALL = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
function, arguments = pickle.loads(bytes.fromhex(sys.argv[2]))
function(*arguments)
"""


def started_server(*, at_once: bool) -> Callable[[], None]:
    """Start the server of this test run; give what ends it.

    It imports at once, or at the first request, which may never come.
    """
    folder = tempfile.TemporaryDirectory(prefix="replan-warm-")
    os.environ[ADDRESS] = f"{folder.name}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.environ[ADDRESS])
        listener.listen(64)
        server = subprocess.Popen(
            [
                *(sys.executable, _HERE / "warm_server.py", str(listener.fileno())),
                *["at once"] * at_once,
            ],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        server.communicate()
        folder.cleanup()
        del os.environ[ADDRESS]

    return end


class Process:
    """A Python program, forked from the server; its interface is that of `subprocess.Popen`."""

    def __init__(self, words, *, stdin=None, stdout=1, stderr=2, env=None):
        self.returncode = None
        self.stdout = None
        if stdout == subprocess.PIPE:
            reads, stdout = os.pipe()
            self.stdout = os.fdopen(reads)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(os.environ[ADDRESS])
        request = [*map(str, words)], str(Path.cwd()), dict(os.environ if env is None else env)
        with Path(os.devnull).open() as nothing:
            files = [nothing.fileno() if stdin is None else stdin, stdout, stderr]
            socket.send_fds(self._server, [pickle.dumps(request)], files)
        self._server.shutdown(socket.SHUT_WR)
        if self.stdout is not None:
            os.close(stdout)
        self.pid = self._told(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def wait(self, timeout=PATIENCE):
        if self.returncode is None:
            self.returncode = self._told(timeout)
            self._server.close()
        return self.returncode

    def poll(self):
        if self.returncode is None and select.select([self._server], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """End it at once, as a power cut would."""
        self.send_signal(signal.SIGKILL)

    def close(self):
        self.kill()
        self.wait()
        if self.stdout is not None:
            self.stdout.close()

    def _told(self, timeout):
        self._server.settimeout(timeout)
        told = self._server.recv(NUMBER.size, socket.MSG_WAITALL)
        assert told, "the server of warm processes has ended"
        return NUMBER.unpack(told)[0]


def run(*words, timeout=PATIENCE, stdout=None, **options):
    """Run a program to its end; give its exit code and what it wrote."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        writes = out.fileno() if stdout is None else stdout
        with Process(words, stdout=writes, stderr=err.fileno(), **options) as process:
            code = process.wait(timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def call(function, *arguments):
    """Call a function of a module that stands beside the tests, in a process of its own."""
    return run(*words_of(function, *arguments))


def words_of(function, *arguments):
    """The words of a program that calls a function of a module beside the tests."""
    return ("-c", _CALL, _HERE, pickle.dumps((function, arguments)).hex())


def words_for(*words):
    """What is typed after `python` where something else starts the program."""
    return ["-I", "-S", *map(str, (_HERE / "warm_program.py", os.environ[ADDRESS], *words))]
