"""Make the samples of a storage format: what this version leaves of runs, in every kind of store.

Usage: python tests/samples/make.py NUMBER [FOLDER]

Run it at the end of a change that raised the format, with the code that raised it. `format_NUMBER`
then holds a SQLite file and a PostgreSQL dump, each plain and encrypted, and the names of the
classes that checkpoints may hold; the tests open and upgrade every one. FOLDER is where the runs
work. The samples name it, so choose one that tells nothing.
"""

import asyncio
import gzip
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from postgres import fresh_database, running_server, server_programs  # noqa: E402 - stands beside
from replan import AgentContext, Message, open_storage  # noqa: E402
from replan.adapters.storage.stored_values.serializer import state_types  # noqa: E402
from replan.ports.session_store import SessionKey, SessionTurn  # noqa: E402
from replan.state.pipeline.threads import Thread, ThreadMessage  # noqa: E402

KEY = "the key of the samples"
PLANS = {
    "over": ["1. Dig @worker", "2. Build @worker (after 1)"],
    "question": ["1. Prime @worker", "2. Paint @painter (after 1)", "3. Hang @worker (after 2)"],
    "approval": ["1. Buy @worker", "2. Pay @worker (after 1)"],
    "killed": ["1. Cut @worker", "2. Saw @worker (after 1)", "3. Glue @worker (after 2)"],
}
"""One run for each way in which a process may leave it; the name is the title of its plan."""

OPTIONS = {"approval": ["--approve", "always"]}
KILLED_AT = {"killed": "2"}


def main(number: str, folder: Path) -> None:
    """Make the four samples."""
    target = HERE / f"format_{number}"
    target.mkdir(exist_ok=True)
    for name in ("team.yaml", "sample_team.py"):
        shutil.copy(HERE / name, folder)
    for kind, key in {"plain": "", "encrypted": KEY}.items():
        where = folder / f"{kind}.sqlite"
        run_all(folder, str(where), key)
        with closing(sqlite3.connect(where)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        keep(target / f"{kind}.sqlite.gz", where.read_bytes())
    names = sorted(f"{kind.__module__}.{kind.__name__}" for kind in state_types())
    (target / "classes").write_text("".join(f"{name}\n" for name in names))
    with running_server() as server:
        for kind, key in {"plain": "", "encrypted": KEY}.items():
            with fresh_database(server.dsn) as address:
                run_all(folder, address, key)
                keep(target / f"{kind}.sql.gz", dump(address))


def run_all(folder: Path, where: str, key: str) -> None:
    """Leave one run of each kind in a store, a session and a thread."""
    for name, steps in PLANS.items():
        (folder / f"{name}.md").write_text(
            "\n".join([f"# {name}\n", *(f"- [ ] {step}" for step in steps)]) + "\n"
        )
        environment = os.environ | {
            "DIE_AT": KILLED_AT.get(name, ""),
            "REPLAN_STORAGE": where,
            "REPLAN_STORAGE_KEY": key,
            "XDG_CONFIG_HOME": str(folder),
            "XDG_DATA_HOME": str(folder),
        }
        command = [sys.executable, "-m", "replan", "run", f"{name}.md", "--team", "team.yaml"]
        done = subprocess.run(
            [*command, *OPTIONS.get(name, [])], cwd=folder, env=environment, check=False
        )
        expected = {"over": 0, "killed": -signal.SIGKILL}.get(name, 3)
        if done.returncode != expected:
            sys.exit(f"the run '{name}' ended with {done.returncode}, not {expected}")
    asyncio.run(leave_a_session(where, key))
    asyncio.run(leave_a_thread(where, key))


async def leave_a_session(where: str, key: str) -> None:
    """Leave a session of two turns in a store, of which the second took the place of another."""
    own, at = SessionKey("", "anna", "sample"), datetime(2026, 11, 25, 12, tzinfo=UTC)
    begun = AgentContext(session_id="sample")
    async with open_storage(where, key=key or None) as storage:
        for number, takes_back in enumerate((None, None, 2)):
            kept = await storage.sessions.load(own, 1 if takes_back else None)
            before = kept.context if kept else begun
            said = Message(role="user", content=f"Turn {number}", timestamp=at.isoformat())
            after = before.replace(dialogue_history=(*before.dialogue_history, said))
            turn = SessionTurn(
                turn_id=str(number),
                at=at,
                given="a digest",
                title="Turns",
                updates=before.updates_to(after),
                takes_back=takes_back,
            )
            await storage.sessions.append(own, turn, number)


async def leave_a_thread(where: str, key: str) -> None:
    """Leave a thread of a pipeline in a store, with a sub-thread."""
    at = datetime(2026, 11, 25, 12, tzinfo=UTC)
    inner = Thread("sample/inner")
    inner.add(ThreadMessage(id="2", sender="bot", text="Inside.", timestamp=at))
    thread = Thread("sample")
    held = {"_thread": inner}
    thread.add(ThreadMessage(id="1", sender="user", text="Outside.", timestamp=at, meta=held))
    async with open_storage(where, key=key or None) as storage:
        await storage.threads.save_thread(thread)


def dump(address: str) -> bytes:
    """The database as statements that any version of PostgreSQL takes."""
    command = [server_programs() / "pg_dump", "--inserts", "--no-owner", "--no-privileges", address]
    written = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Settings and psql's own commands differ between versions; nothing here depends on them.
    skipped = ("SET ", "SELECT pg_catalog.set_config", "\\", "--")
    lines = (line for line in written.splitlines() if line and not line.startswith(skipped))
    return "\n".join(lines).encode()


def keep(path: Path, content: bytes) -> None:
    """Write a sample, the same bytes for the same content."""
    path.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    given = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()
    main(sys.argv[1], Path(given))
