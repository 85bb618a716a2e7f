"""A receiver of alerts on this machine."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def receiver(*statuses, location="", version="HTTP/1.0", retry_after=""):
    """A server that answers with these statuses, one after another, then 204; and what it got.

    What it got is the path, the headers and the JSON of each request. The headers have the raw body under "body", and
    the time under "at".
    """
    got, left = [], list(statuses)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = version

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {**dict(self.headers), "body": body, "at": time.monotonic()}
            got.append((self.path, headers, json.loads(body)))
            status = left.pop(0) if left else 204
            self.send_response(status)
            if status == 503 and retry_after:
                self.send_header("retry-after", retry_after)
            if location:
                self.send_header("location", location)
            if status != 204:
                self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", got
    finally:
        server.shutdown()
        server.server_close()
