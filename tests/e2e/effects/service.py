"""A service outside of the process: it counts what reaches it, and can hold it back.

`python service.py [HELD ...]` prints its address, then a line of JSON for each arrival. The first
arrival at a path that is HELD gets no answer, so whoever reads the lines knows that its sender is
in the middle of it. Nothing here is Replan's.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

held: set[str] = set()
arrived: list[dict[str, str]] = []
guard = threading.Lock()
never = threading.Event()


class Counter(BaseHTTPRequestHandler):
    """Takes effects by POST, tells them by GET."""

    def do_GET(self) -> None:
        with guard:
            self._answer(arrived)

    def do_POST(self) -> None:
        address = urlsplit(self.path)
        key = parse_qs(address.query).get("key", [""])[0]
        with guard:
            arrived.append({"path": address.path, "key": key})
            is_held = address.path in held
            held.discard(address.path)
            sys.stdout.write(json.dumps(arrived[-1]) + "\n")
            sys.stdout.flush()
        if is_held:
            never.wait()
        self._answer({"receipt": len(arrived)})

    def log_message(self, *args: object) -> None:
        """Keep silent."""

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until the process is killed."""
    held.update(sys.argv[1:])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Counter)
    server.daemon_threads = True
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
