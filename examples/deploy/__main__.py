"""A deployment on one machine: PostgreSQL, a server and four workers, as processes.

    python examples/deploy

It starts a PostgreSQL of its own in a new folder and prints its address, unless `--postgres` names
a database. Then it publishes the team, and starts `replan serve --queue` and four `replan worker`,
one of them for the queue `heavy`. Ctrl-C or SIGTERM stops all of them, the database last. The
programs of PostgreSQL come from `--bin`, from the path or from /usr/lib/postgresql. They refuse to
run as root; as root, they run as the user `nobody`.
"""

import argparse
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE = 30.0
QUEUES = ("runs", "runs", "runs", "heavy")
"""The queues of the four workers."""


def main() -> int:
    """Start everything, and stop it in the opposite order."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--postgres", metavar="DSN", help="a database that is there already")
    parser.add_argument("--bin", type=Path, help="the folder with initdb and postgres")
    parser.add_argument("--port", type=int, default=8321, help="the port of the server")
    parser.add_argument("--team", type=Path, default=HERE / "team.yaml", help="the team file")
    given = parser.parse_args()
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    with contextlib.ExitStack() as stack:
        dsn = given.postgres or stack.enter_context(postgres(given.bin))
        replan = [sys.executable, "-m", "replan"]
        team, storage = str(given.team), ["--storage", dsn]
        published = subprocess.run([*replan, "team", "publish", team, *storage], check=False)  # noqa: S603
        if published.returncode:
            return published.returncode
        token = os.environ.get("REPLAN_TOKEN") or secrets.token_urlsafe(24)
        environment = {**os.environ, "REPLAN_TOKEN": token}
        serve = [*replan, "serve", team, "--queue", "--port", str(given.port), *storage]
        works = [[*replan, "worker", "--team", team, "--queues", each, *storage] for each in QUEUES]
        started = [stack.enter_context(process(words, environment)) for words in [serve, *works]]
        print(f"token: {token}", flush=True)
        while not ended.wait(0.5):
            if any(each.poll() is not None for each in started):
                print("A process ended by itself; the others are stopped.", file=sys.stderr)
                return 1
    return 0


@contextlib.contextmanager
def process(words: list[str], environment: dict[str, str]) -> Generator[subprocess.Popen[bytes]]:
    """A process of Replan, in its own group: Ctrl-C reaches it only through this program."""
    started = subprocess.Popen(words, env=environment, start_new_session=True)  # noqa: S603
    try:
        yield started
    finally:
        ended(started, signal.SIGTERM)


@contextlib.contextmanager
def postgres(programs: Path | None) -> Generator[str]:
    """A PostgreSQL in a new folder, on loopback; it is removed at the end with all its data."""
    programs, user = programs or found(), "nobody" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="replan-deploy-"))
    try:
        if user:
            account = pwd.getpwnam(user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        data, port = folder / "data", free_port()
        make = [programs / "initdb", "-D", data, "-U", "replan", "-A", "trust", "-E", "UTF8"]
        subprocess.run(make, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL)  # noqa: S603
        serve = [programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", ""]
        with (folder / "log").open("ab") as log:
            server = subprocess.Popen(  # noqa: S603
                serve, user=user, cwd="/", stdout=log, stderr=log, start_new_session=True
            )
        try:
            reached(port, server)
            address = f"postgresql://replan@127.0.0.1:{port}/postgres"
            print(f"storage: {address}", flush=True)
            yield address
        finally:
            ended(server, signal.SIGINT)
    finally:
        shutil.rmtree(folder)


def found() -> Path:
    """The folder of the programs of PostgreSQL."""
    on_path = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if on_path is None and not places:
        sys.exit("No PostgreSQL is found. Install one, give --bin FOLDER, or --postgres DSN.")
    return Path(on_path).resolve().parent if on_path else places[0]


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def reached(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server takes connections."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    sys.exit("PostgreSQL did not start.")


def ended(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Ask a process to end, and wait; if it does not end, kill it."""
    process.send_signal(how)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
