"""The REST service in front of the catalogue: the standard library's server, on loopback."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from catalogue import Catalogue
from sqlalchemy.exc import IntegrityError

PORT = 8765
_LONGEST = 100_000


@contextmanager
def served(catalogue: Catalogue, port: int = PORT) -> Generator[str]:
    """Serve a catalogue on 127.0.0.1; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            status, fields = self._answered()
            content = json.dumps(fields).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            # The client may be gone; the answer is stored under its key.
            with suppress(ConnectionError):
                self.end_headers()
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_any  # noqa: N815 - the names of the base class

        def _answered(self) -> tuple[int, dict[str, Any]]:
            length = int(self.headers.get("Content-Length") or 0)
            if length > _LONGEST:
                return 413, {"error": "the request is too large"}
            try:
                given = json.loads(self.rfile.read(length) or b"{}")
            except ValueError:
                return 400, {"error": "the request is no JSON"}
            if not isinstance(given, dict):
                return 400, {"error": "the request has no fields"}
            fields = cast("dict[str, Any]", given)
            path = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
            key = self.headers.get("Idempotency-Key", "")
            try:
                return catalogue.done(self.command, path, fields, key)
            except IntegrityError:
                # Another request with this key was quicker: return its answer.
                return catalogue.done(self.command, path, fields, key)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as the base class
            """Keep the conversation free of the server's log."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
