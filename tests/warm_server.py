"""A Python that has imported what Replan needs, and forks for each program that a test starts.

`python warm_server.py SOCKET` takes requests at a listening socket until its standard input ends,
and imports at the first one; with a word more, at once. A request is three file descriptors and a
pickle of the words after `python`, a folder and the environment. The answers are two numbers: the
id of the process when it begins, its exit code when it has ended. The fork leaves `serve`, so that
it does what Python does when it starts and ends: its own `__main__`, its own streams, its exit
handlers, its threads, its exit code. Only the modules are not taken down: this would copy all
memory of the server, and take longer than most programs.
"""

import asyncio
import atexit
import gc
import io
import os
import pickle
import runpy
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

# What programs import while they work; what is not here they import themselves. DuckDB is not: it
# complains at the end of a process whose garbage was not collected.
PRELOADED = (
    "anyio._backends._asyncio",
    "encodings.utf_8_sig",
    "httpcore2",
    "kept_runs",
    "killed_programs",
    "langchain.agents",
    "langchain_core.messages.block_translators.langchain_v0",
    "langchain_core.tracers.context",
    "langchain_core.tracers.run_collector",
    "langchain_core.tracers.stdout",
    "langchain_openai",
    "mcp.server.mcpserver.resolve",
    "openai.resources.chat.completions.completions",
    "prompt_toolkit",
    "replan.models.providers.model_http",
    "replan.models.providers.openai_chat",
    "replan.cli.shared.carry_on",
    "replan.cli.shared.carry_out",
    "replan.cli.main",
    "replan.cli.talk.talking",
    "replan.server.serving",
    "replan.specialists.prompted",
    "replan.specialists.tool_loop",
    "replan.testing.scripted",
    "replan.storage.advisory_holds",
    "replan.storage.databases.postgres",
    "replan.cli.page.served_pages",
    "replan.cli.shared.options",
    "replan.views.live.live_plan",
    "replan.workers.open_worker",
    "replan_local.host.model",
    "replan_local.specialists",
)
NUMBER = struct.Struct("!q")
PIECE = 1 << 16


class Server:
    """Forks for each request and tells who asked when the fork has ended."""

    def __init__(self, listener):
        self._listener = listener
        self._asked = {}
        self._ends, self._ended = os.pipe()
        os.set_blocking(self._ended, False)

    def serve(self):
        """Give the words of a program in the fork that is to run them; none at the end."""
        signal.set_wakeup_fd(self._ended)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select([self._listener, self._ends, 0], [], [])
            if self._ends in ready:
                os.read(self._ends, PIECE)
                self._tell_ends()
            if self._listener in ready and (words := self._fork()):
                return words
            if 0 in ready:
                return None

    def _fork(self):
        connection, _ = self._listener.accept()
        (words, folder, environment), files = received(connection)
        preload()
        if pid := os.fork():
            for file in files:
                os.close(file)
            self._asked[pid] = connection
            tell(connection, pid)
            return None
        self._asked[os.getpid()] = connection
        self._leave()
        become(folder, environment, files)
        return words

    def _tell_ends(self):
        for pid in list(self._asked):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with self._asked.pop(pid) as connection:
                    tell(connection, os.waitstatus_to_exitcode(status))

    def _leave(self):
        """Let go of all that is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._listener.close()
        for connection in self._asked.values():
            connection.close()
        os.close(self._ends)
        os.close(self._ended)


@cache
def preload():
    """Import once what every program would import."""
    # LangGraph reads this on import; the terminal sets it before that.
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
    for name in PRELOADED:
        import_module(name)
    build_classes()
    rehearse()
    assert threading.active_count() == 1, threading.enumerate()
    # No fork looks through what was there before it, nor takes it down.
    gc.freeze()
    gc.set_threshold(10_000)


def build_classes():
    """Build all classes of values, each of which is otherwise built when it is first used."""
    from pydantic import BaseModel  # noqa: PLC0415 - as all that is preloaded

    found = [BaseModel]
    for each in found:
        found += each.__subclasses__()
        if each.__module__.startswith(("replan", "openai.types.chat")):
            each.model_rebuild()


def rehearse():
    """Run once what most programs run: what is made at first use is then made for all of them."""
    from langsmith.utils import get_env_var  # noqa: PLC0415 - as all that is preloaded

    from replan import open_runtime  # noqa: PLC0415 - as above
    from replan.base.secrets.masking import KNOWN  # noqa: PLC0415 - as above
    from replan_local import local_team  # noqa: PLC0415 - as above

    async def run_once(folder):
        async with open_runtime(local_team(folder), storage=f"{folder}/runs.db") as runtime:
            await runtime.run("calculate 2 + 3; write report")

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run_once(Path(folder)))
    # What it was told by the environment, no program knows.
    get_env_var.cache_clear()
    KNOWN.clear()


def received(connection):
    """A request: it ends where the other side has no more to say."""
    message, files, _, _ = socket.recv_fds(connection, PIECE, 3)
    while piece := connection.recv(PIECE):
        message += piece
    return pickle.loads(message), files  # noqa: S301 - of our own tests


def tell(connection, number):
    with suppress(OSError):  # who asked may have gone
        connection.sendall(NUMBER.pack(number))


def become(folder, environment, files):
    """Be as a process that was just started there."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = sys.__stdin__ = stream(0, "rb", encoding)
    sys.stdout = sys.__stdout__ = stream(1, "wb", encoding)
    sys.stderr = sys.__stderr__ = stream(2, "wb", encoding, errors="backslashreplace")


def stream(number, mode, encoding, errors="strict"):
    """A standard stream as Python makes it."""
    raw = open(number, mode, closefd=False)  # noqa: SIM115 - open until the end
    by_line = number == 2 or raw.isatty()
    return io.TextIOWrapper(raw, encoding, errors, line_buffering=by_line)


def run(words):
    """Do what `python WORDS` does."""
    match words:
        case ["-m", module, *rest]:
            sys.argv, sys.path[0] = [module, *rest], os.getcwd()  # noqa: PTH109 - as Python has it
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.argv, sys.path[0] = ["-c", *rest], ""
            main = sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), main.__dict__)  # noqa: S102 - of our own tests
        case [script, *_]:
            sys.argv, sys.path[0] = words, os.path.dirname(script)  # noqa: PTH120 - as Python has it
            runpy.run_path(script, run_name="__main__")


def ended(words):
    """Do it, and give the exit code; Python itself tells of an end that is not a number."""
    try:
        run(words)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        return end.code or 0
    return 0


def leave(code):
    """End as Python does: its threads, its exit handlers, its garbage, its streams."""
    threading._shutdown()  # noqa: SLF001 - what Python calls
    atexit._run_exitfuncs()  # noqa: SLF001 - what Python calls
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    if sys.argv[2:]:
        preload()
    if asked := Server(socket.socket(fileno=int(sys.argv[1]))).serve():
        leave(ended(asked))
