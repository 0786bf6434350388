"""The client against servers that fail: what it sends again is the same."""

import http.server
import json
import sys
import threading

import numpy as np
import pytest

from metrack import Client
from metrack import client as client_module
from metrack.client import ServeError
from tests.serve.servers import judged


class Failing(http.server.BaseHTTPRequestHandler):
    """Answers as its server's list says, and keeps what was sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, self.headers["authorization"], body))
        status = self.server.answers.pop(0)
        if status is None:
            self.close_connection = True
            self.connection.close()
            return
        said = {"accepted": 1, "duplicates": 0, "sequence": 1} if status < 400 else {"detail": "no"}
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.send_header("retry-after", "0")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def failing(monkeypatch):
    monkeypatch.setattr(client_module, "_pause", lambda attempt: 0.0)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    server.seen, server.url = [], f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_failed_is_sent_again_with_the_same_ids(failing):
    failing.answers = [None, 503, 429, None, 200]
    pairs, y = judged(3)
    with Client(failing.url, token="secret") as client:
        assert client.feedback("m", pairs, y) == (1, 0, 1)
    assert len(failing.seen) == 5
    assert len(set(failing.seen)) == 1
    assert failing.seen[0][:2] == ("/v1/metrics/m/feedback", "Bearer secret")


def test_what_is_wrong_is_not_sent_again(failing):
    failing.answers = [422]
    pairs, y = judged(3)
    with Client(failing.url) as client, pytest.raises(ServeError, match="422: no"):
        client.feedback("m", pairs, y)


def test_it_gives_up(failing):
    failing.answers = [503, 503, None, None]
    with Client(failing.url, retries=1) as client:
        with pytest.raises(ServeError, match="503"):
            client.feedback("m", *judged(1))
        with pytest.raises((OSError, client_module.http.client.HTTPException)):
            client.feedback("m", *judged(1))
    assert failing.answers == []


def test_without_pyarrow_json_is_sent(server, client, metric, monkeypatch):
    pairs, y = judged(30)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert client.feedback(metric, pairs[:20], y[:20], judge="ann").accepted == 20
    client.put_items(metric, ["a", "b"], np.eye(2, 3))
    assert client.feedback(metric, [("a", "b")], [1]).accepted == 1
    by_json = client.distance(metric, pairs)
    monkeypatch.undo()
    np.testing.assert_array_equal(client.distance(metric, pairs), by_json)


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", ""])
def test_wrong_addresses_are_refused(url):
    with pytest.raises(ValueError, match="give an address"):
        Client(url)


def test_wrong_sizes_are_refused_before_anything_is_sent():
    client = Client("http://127.0.0.1:9")
    with pytest.raises(ValueError, match="2 pairs, 1 labels"):
        client.feedback("m", np.zeros((2, 2, 3)), [1])
    with pytest.raises(ValueError, match="shape"):
        client.feedback("m", np.zeros((2, 3)), [1, 1])
