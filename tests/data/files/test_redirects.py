"""What a redirect may lead to: judged at every hop, against real servers that mean harm."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest

from aaiclick.data import Context
from aaiclick.data.files import redirects
from aaiclick.data.files.redirects import Place, fetch, is_public
from aaiclick.errors import InputError

Answer = tuple[int, dict[str, str], bytes]


class Host:
    """A server on 127.0.0.1: answers by path, and the requests that it saw."""

    def __init__(self, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self.answers: dict[str, Answer | Callable[[], Answer]] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []

    def leads(self, path: str, location: str, status: int = 302) -> str:
        """Make a path lead elsewhere, and return its address."""
        self.answers[path] = (status, {"Location": location}, b"")
        return f"{self.url}{path}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.seen]


@pytest.fixture
def hosts() -> Iterator[Callable[[], Host]]:
    """Starts a server for each call."""
    servers = []

    def start() -> Host:
        class Pages(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mine.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                found = mine.answers.get(self.path, (404, {}, b"nothing"))
                status, headers, body = found() if callable(found) else found
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *given: object) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        mine = Host(server.server_port)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return mine

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def host(hosts: Callable[[], Host]) -> Host:
    found = hosts()
    found.answers["/r"] = (200, {}, b"here")
    return found


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 127.0.0.1 count as public: there is no public network here."""
    known = redirects.is_public
    monkeypatch.setattr(redirects, "is_public", lambda address: address == "127.0.0.1" or known(address))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_what_stays_on_the_host_is_followed(host: Host, status: int) -> None:
    assert fetch(host.leads("/a", "/r", status), 1) == b"here"
    assert fetch(host.leads("/b", f"{host.url}/a"), 2) == b"here"
    host.answers["/r?x=%C3%A4%20b"] = (200, {}, b"quoted")
    assert fetch(host.leads("/c", "r?x=%C3%A4%20b#part", status), 1) == b"quoted"


def test_no_more_hops_than_were_allowed(host: Host) -> None:
    host.leads("/b", "/r")
    with pytest.raises(InputError, match="leads elsewhere again, and 1 redirects are followed"):
        fetch(host.leads("/a", "/b"), 1)
    assert host.paths == ["/a", "/b"]


@pytest.mark.parametrize("circle", [["/a", "/a"], ["/a", "/b", "/a"], ["/a", "/b", "/c", "/b"]])
def test_a_circle_is_left_at_once(host: Host, circle: list[str]) -> None:
    for place, following in pairwise(circle):
        host.leads(place, following)
    with pytest.raises(InputError, match="leads in a circle"):
        fetch(f"{host.url}/a", 20)
    assert host.paths == circle[:-1]


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("file:///etc/passwd", "not of http:// or https://"),
        ("ftp://127.0.0.1/x", "not of http:// or https://"),
        ("gopher://127.0.0.1:6379/_FLUSHALL", "not of http:// or https://"),
        ("data:text/csv,a", "not of http:// or https://"),
        ("javascript:1", "not of http:// or https://"),
        ("http://", "in a circle"),
        ("http://:80/", "not of http:// or https://"),
        ("", "no address"),
        ("http://127.0.0.1:port/", "no address"),
        ("http://[::1/", "no address"),
        ("http:\\\\127.0.0.1\\x", "no address"),
        ("/a b", "no address"),
        ("http://mallory:secret@127.0.0.1/", "user of its own"),
        ("http://127.0.0.1:1/", "127.0.0.1 is not public"),
        ("//127.0.0.1:6379/", "127.0.0.1 is not public"),
        ("http://localhost/", "is not public"),
        ("http://127.1/", "127.0.0.1 is not public"),
        ("http://2130706433/", "127.0.0.1 is not public"),
        ("http://0x7f.1/", "127.0.0.1 is not public"),
        ("http://0.0.0.0/", "0.0.0.0 is not public"),
        ("http://[::1]/", "::1 is not public"),
        ("http://[::ffff:10.0.0.1]/", "is not public"),
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254 is not public"),
        ("http://10.1.2.3/", "10.1.2.3 is not public"),
        ("http://nobody.invalid/", "is not known"),
    ],
)
def test_what_leads_to_a_place_that_nobody_named_is_refused(host: Host, location: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        fetch(host.leads("/a", location), 5)
    assert "secret" not in str(caught.value)
    assert host.paths == ["/a"]


def test_also_the_second_hop_is_judged(host: Host, hosts: Callable[[], Host], elsewhere: None) -> None:
    far = hosts()
    far.leads("/b", "http://169.254.169.254/")
    with pytest.raises(InputError, match=r"169\.254\.169\.254 is not public"):
        fetch(host.leads("/a", f"{far.url}/b"), 5)
    assert far.paths == ["/b"]


@pytest.mark.parametrize("way", ["to another port", "and back"])
def test_user_and_password_are_shown_only_where_they_were_given_for(
    host: Host, hosts: Callable[[], Host], elsewhere: None, way: str
) -> None:
    far = hosts()
    far.answers["/r"] = (200, {}, b"far")
    far.leads("/back", f"{host.url}/r")
    host.leads("/near", f"{far.url}/{'r' if way == 'to another port' else 'back'}")
    host.leads("/a", "/near")
    assert fetch(f"http://ann:p%40ss@127.0.0.1:{host.port}/a", 5) == (b"far" if way == "to another port" else b"here")
    shown = [headers.get("authorization", "") for _, headers in host.seen]
    assert set(shown) == {"Basic YW5uOnBAc3M="}
    assert [headers.get("authorization") for _, headers in far.seen] == [None]
    assert far.seen[0][1]["host"] == f"127.0.0.1:{far.port}"


def test_a_password_is_not_told_in_errors(host: Host) -> None:
    with pytest.raises(InputError) as caught:
        fetch(f"http://ann:s3cret@127.0.0.1:{host.port}/gone", 5)
    assert "404" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_https_does_not_lead_down_to_http() -> None:
    before = Place("https", "example.com", 443, "/", "")
    with pytest.raises(InputError, match=r"from https:// down to http://example\.com:80/x"):
        redirects._next(before, "http://example.com/x", "https://example.com/")
    assert redirects._next(before._replace(scheme="http", port=80), "https://example.com/x", "").scheme == "https"


@pytest.mark.parametrize(
    ("place", "refused"),
    [
        (Place("http", "inside", 8080, "/x", ""), True),
        (Place("https", "inside", 443, "/x", ""), False),
        (Place("http", "inside", 80, "/x", ""), False),
        (Place("https", "beside", 443, "/x", ""), True),
    ],
)
def test_the_usual_ports_of_a_host_that_was_named_are_one(place: Place, refused: bool) -> None:
    first = Place("http", "inside", 80, "/", "")
    if not refused:
        redirects._judge(place, first, ["10.0.0.1"], "")
        return
    with pytest.raises(InputError, match="not public"):
        redirects._judge(place, first, ["93.184.216.34", "10.0.0.1"], "")


def test_a_name_that_means_another_address_later_is_not_looked_up_again(
    host: Host, monkeypatch: pytest.MonkeyPatch, elsewhere: None
) -> None:
    asked: list[str] = []
    look = socket.getaddrinfo

    def looked(name: Any, *given: Any, **named: Any) -> Any:
        if name != "rebound.test":
            return look(name, *given, **named)
        asked.append(name)
        return look("127.0.0.1" if len(asked) == 1 else "169.254.169.254", *given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", looked)
    host.leads("/b", "/r")
    url = host.leads("/a", f"http://rebound.test:{host.port}/b")
    assert fetch(url, 5) == b"here"
    assert asked == ["rebound.test"]
    assert host.seen[1][1]["host"] == f"rebound.test:{host.port}"


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Content-Length": "400"}, "broke off|cannot be fetched"),
        ({"Content-Encoding": "gzip"}, "encoding that was not asked for"),
    ],
)
def test_half_an_answer_is_none(host: Host, headers: dict[str, str], told: str) -> None:
    host.answers["/half"] = (200, {"Connection": "close", **headers}, b"half")
    with pytest.raises(InputError, match=told):
        fetch(host.leads("/a", "/half"), 1)


def test_no_more_is_read_than_memory_is_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redirects, "FETCHED_BYTES_MAX", 3)
    with pytest.raises(InputError, match="at most 3 bytes"):
        fetch(host.leads("/a", "/r"), 1)


def test_an_answer_that_never_ends_is_cut(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(redirects, "FETCHED_S_MAX", 0.2)
        with pytest.raises(InputError, match="cannot be fetched"):
            fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/", 1)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::5db8:d822", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("192.168.1.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("0.0.0.0", False),
        ("::", False),
        ("::1", False),
        ("fe80::1%1", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


async def test_what_changes_after_it_was_judged_is_not_read(road: Context, host: Host) -> None:
    """The rows are those of the one answer, however often the file is looked at."""
    contents = iter([b"a,b\n1,x\n2,y\n"])
    host.answers["/r.csv"] = lambda: (200, {}, next(contents, b"a,b,c\nother\n"))
    made = await road.create_object_from_url(host.leads("/a.csv", "/r.csv"), redirects=1, where="a > 1")
    assert await made.data() == {"a": [2], "b": ["y"]}
    assert host.paths == ["/a.csv", "/r.csv"]
