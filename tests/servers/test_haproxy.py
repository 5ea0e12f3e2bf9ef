"""The guide's haproxy before two servers: who answers, and what is left behind."""

import http.server
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from tests.servers import haproxy


class Ready(http.server.BaseHTTPRequestHandler):
    """Says which server it is."""

    def do_GET(self) -> None:
        said = str(self.connection.getsockname()[1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def answering() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ready) as made:
        threading.Thread(target=made.serve_forever, args=[0.01], daemon=True).start()
        yield int(made.server_address[1])
        made.shutdown()


def heard(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.code)


def test_whoever_is_left_answers(haproxy_there: None) -> None:
    before = {*psutil.Process().children(recursive=True)}
    with ExitStack() as first, answering() as second:
        ports = {str(port) for port in (first.enter_context(answering()), second)}
        with haproxy.server([f"127.0.0.1:{port}" for port in ports]) as port:
            assert {heard(port) for _ in range(20)} == ports
            first.close()
            assert {heard(port) for _ in range(20)} == {str(second)}, "nobody is told of the one that is gone"
            started = {*psutil.Process().children(recursive=True)} - before
        assert not any(process.is_running() for process in started)


def test_the_guides_configuration_has_what_tests_change() -> None:
    text = haproxy.configured(haproxy.recommended(), "127.0.0.1:1", ["127.0.0.1:2"])
    assert "bind 127.0.0.1:1\n" in text
    assert [line.split()[2] for line in text.splitlines() if line.split()[:1] == ["server"]] == ["127.0.0.1:2"]


def test_without_its_program_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(haproxy, "find_program", lambda *names: None)
    assert not haproxy.can_run()
