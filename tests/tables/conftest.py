"""A small OpenML on this machine: descriptions and files over HTTP, with faults on demand."""

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

# A few lines of each kind of column, with a row number and a column to ignore.
KR_VS_KP = b"""@relation kr-vs-kp
@attribute id numeric
@attribute secret {x,y}
@attribute bkblk {t,f}
@attribute size numeric
@attribute class {won,nowin}
@data
1,x,t,1.5,won
2,y,f,?,nowin
3,x,?,2.5,won
4,x,t,3.5,?
""" + b"".join(b"%d,x,t,%d,won\n" % (i, i % 7) for i in range(5, 2000))


class FakeOpenML:
    """What the server has, what it does wrong, and what it was asked."""

    def __init__(self):
        self.original = KR_VS_KP
        self.content = {3: KR_VS_KP}
        self.details = {3: {"ignore_attribute": ["secret"], "row_id_attribute": "id"}}
        self.announced_md5 = {}
        self.cuts = []  # after how many bytes to hang up, one for each request of a file
        self.answers = []  # status codes to give instead of a file, one for each request
        self.ignores_ranges = False
        self.asked = []  # (path, Range header)
        self.url = ""

    def description(self, data_id):
        content = self.content[data_id]
        return {
            "id": str(data_id),
            "name": "kr-vs-kp",
            "version": "1",
            "format": "ARFF",
            "url": f"{self.url}/data/v1/download/{data_id}/table.arff",
            "default_target_attribute": "class",
            "md5_checksum": self.announced_md5.get(data_id, hashlib.md5(content).hexdigest()),  # noqa: S324 - as OpenML has it
            **self.details.get(data_id, {}),
        }

    def files_asked(self):
        return [wanted for path, wanted in self.asked if path.startswith("/data/")]


class Handler(BaseHTTPRequestHandler):
    @property
    def fake(self):
        return self.server.fake

    def do_GET(self):
        self.fake.asked.append((self.path, self.headers.get("Range")))
        if match := re.fullmatch(r"/api/v1/json/data/(\d+)", self.path):
            self.describe(int(match[1]))
        elif match := re.fullmatch(r"/data/v1/download/(\d+)/table.arff", self.path):
            self.send_file(self.fake.content[int(match[1])])
        else:
            self.send_error(404)

    def describe(self, data_id):
        if data_id not in self.fake.content:
            self.send_error(412, "Unknown dataset")
            return
        body = json.dumps({"data_set_description": self.fake.description(data_id)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, content):
        if self.fake.answers:
            self.send_error(self.fake.answers.pop(0))
            return
        start = 0
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if match and not self.fake.ignores_ranges:
            start = int(match[1])
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        rest = content[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.fake.cuts.pop(0)] if self.fake.cuts else rest)

    def log_message(self, *arguments):
        pass


@contextmanager
def running_openml():
    """Run a server until the block ends."""
    fake = FakeOpenML()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.fake = fake
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def serving():
    """Give the means to run a server for a while."""
    return running_openml


@pytest.fixture
def fake():
    """Give a server that runs throughout the test."""
    with running_openml() as fake:
        yield fake
