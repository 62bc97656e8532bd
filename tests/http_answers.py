"""HTTP servers of tests: what answers says only what it is told to, and nothing on the terminal."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answering(BaseHTTPRequestHandler):
    """Answers requests; a subclass has the methods, such as `do_POST`."""

    def give(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """Serve in a thread, and give the address."""
    with server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
