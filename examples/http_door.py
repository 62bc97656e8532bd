"""Your own server: runs over HTTP, followed from any event on, answered, stopped, resumed.

    python examples/http_door.py

`Door` is all of it. REPLAN_MODEL may name the host's model. A real server first asks who calls.
"""

import json
import os
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2

from replan import Host, ReplanError, Specialist, SyncRuntime, Team, ask_user, open_runtime


class Door(BaseHTTPRequestHandler):
    """POST /runs, /runs/ID/answer, .../stop, .../resume; GET /runs/ID, /runs/ID/events/AFTER."""

    runtime: SyncRuntime

    def do_GET(self) -> None:
        try:
            reply, status = self._reply(self.command, *self.path.split("/")[1:]), 200
        except (ReplanError, ValueError) as error:
            reply, status = {"error": str(error)}, 404 if "There is no run" in str(error) else 400
        is_json = isinstance(reply, dict)
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if is_json else "text/event-stream")
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.writelines(map(str.encode, [json.dumps(reply)] if is_json else reply))

    def do_POST(self) -> None:
        self.do_GET()

    def _reply(self, *asked: str) -> Any:
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        match asked:
            case ["POST", "runs"]:
                return {"run_id": self.runtime.start(given).run_id}
            case ["POST", "runs", run_id, "answer"]:
                return {"run_id": self.runtime.answer(run_id, given, by="http").run_id}
            case ["POST", "runs", run_id, "stop"]:
                self.runtime.stop(run_id, by="http")
            case ["POST", "runs", run_id, "resume"]:
                self.runtime.get(run_id)
                Thread(target=self.runtime.resume, args=[run_id]).start()  # it waits for the end
            case ["GET", "runs", run_id]:
                run = self.runtime.get(run_id)
                waiting = {ask.key: ask.text for ask in run.pending_questions}
                steps = {each.step.id: each.status_text for each in run.steps}
                return {"outcome": run.outcome, "steps": steps, "waiting": waiting}
            case ["GET", "runs", run_id, "events", after]:
                self.runtime.get(run_id)
                # A browser that lost the connection sends the number of its last event.
                known = max(0, int(self.headers.get("Last-Event-ID", after)))
                events = self.runtime.events(run_id, after=known)
                return (f"id: {each.seq}\ndata: {each.model_dump_json()}\n\n" for each in events)
            case _:
                raise ValueError("There is no run at this address.")
        return {"run_id": run_id}


if __name__ == "__main__":
    painter = Specialist(name="painter", intended_use="Paints.", run=lambda _: ask_user("Colour?"))
    team = Team(Host(os.environ.get("REPLAN_MODEL", "offline")), [painter])
    opening = open_runtime(team, storage=":memory:")
    with opening as Door.runtime, ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/runs"
        run = f"{url}/" + httpx2.post(url, json={"plan": "- [ ] 1. Hall @painter"}).json()["run_id"]
        seen = httpx2.get(f"{run}/events/0", timeout=None).text.count("id: ")
        print(httpx2.get(run).text)
        httpx2.post(f"{run}/answer", json="blue")
        print(httpx2.get(f"{run}/events/{seen}", timeout=None).text.count("id: "), "more events")
        print(httpx2.get(run).text)
        server.shutdown()
