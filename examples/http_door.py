"""A door of your own: runs over HTTP, followed from any event on, answered, stopped, resumed.

    python examples/http_door.py

`Door` is all of it; the rest calls it as any client would. The host is the offline model, or the
one of REPLAN_MODEL. A real server asks who calls before it does anything.
"""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import urlopen

from replan import Host, ReplanError, Specialist, SyncRuntime, Team, ask_user, open_runtime


class Door(BaseHTTPRequestHandler):
    """POST /runs, /runs/ID/answer, .../stop, .../resume; GET /runs/ID, /runs/ID/events/AFTER."""

    runtime: SyncRuntime

    def do_POST(self) -> None:
        self._answered(self._post)

    def do_GET(self) -> None:
        self._answered(self._get)

    def _answered(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (ReplanError, ValueError) as error:
            is_missing = str(error).startswith("There is no run")
            self._give({"error": str(error)}, 404 if is_missing else 400)

    def _post(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match self.path.split("/")[1:]:
            case ["runs"]:
                self._give({"run_id": self.runtime.start(given).run_id})
            case ["runs", run_id, "answer"]:
                self._give({"run_id": self.runtime.answer(run_id, given, by="http").run_id})
            case ["runs", run_id, "stop"]:
                self.runtime.stop(run_id, by="http")
                self._give({"run_id": run_id})
            case ["runs", run_id, "resume"]:
                self.runtime.look(run_id)
                # It gives the result of the run, and nobody is to wait for that here.
                threading.Thread(target=self.runtime.resume, args=[run_id]).start()
                self._give({"run_id": run_id})
            case _:
                self.send_error(404)

    def _get(self) -> None:
        match self.path.split("/")[1:]:
            case ["runs", run_id]:
                run = self.runtime.look(run_id)
                waiting = {ask.key: ask.text for ask in run.waiting}
                self._give({"outcome": run.outcome, "steps": run.steps, "waiting": waiting})
            case ["runs", run_id, "events", after]:
                # A browser that lost the connection says by itself which event it had last.
                known = int(self.headers.get("Last-Event-ID", after))
                self.runtime.look(run_id)
                self._begin("text/event-stream")
                with suppress(ConnectionError):
                    for event in self.runtime.events(run_id, after=known):
                        told = f"id: {event.seq}\ndata: {event.model_dump_json()}\n\n"
                        self.wfile.write(told.encode())
            case _:
                self.send_error(404)

    def _begin(self, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def _give(self, value: Any, status: int = 200) -> None:
        self._begin("application/json", status)
        self.wfile.write(json.dumps(value).encode())


def _call(address: str, given: bytes | None = None) -> str:
    with urlopen(address, given) as reply:  # noqa: S310 - an address of our own
        return reply.read().decode()


if __name__ == "__main__":
    host = Host(model=os.environ.get("REPLAN_MODEL", "offline"))
    painter = Specialist(name="painter", intended_use="Paints.", run=lambda _: ask_user("Colour?"))
    opening = open_runtime(Team(host=host, specialists=[painter]), storage=":memory:")
    with opening as Door.runtime, ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        threading.Thread(target=server.serve_forever).start()
        door = f"http://127.0.0.1:{server.server_port}/runs"
        begun = _call(door, b'{"plan": "- [ ] 1. Hall @painter"}')
        run = f"{door}/{json.loads(begun)['run_id']}"
        seen = _call(f"{run}/events/0").count("id: ")
        print(_call(run))
        _call(f"{run}/answer", b'"blue"')
        print(_call(f"{run}/events/{seen}").count("id: "), "more events")
        print(_call(run))
        server.shutdown()
