"""The address of a server, as it is written."""

from __future__ import annotations

import pytest

from aaiclick.errors import ConfigError
from aaiclick.server_address import Address


@pytest.mark.parametrize(
    ("url", "named", "port", "path"),
    [
        ("http://127.0.0.1:8765", "127.0.0.1:8765", 8765, ""),
        ("http://localhost:8765/api/v1", "localhost:8765", 8765, ""),
        ("https://a.example.com/", "a.example.com", 443, ""),
        ("https://a.example.com:8443/flows/", "a.example.com:8443", 8443, "/flows"),
        ("http://[::1]:80", "[::1]", 80, ""),
        ("http://[::1]:81", "[::1]:81", 81, ""),
    ],
)
def test_what_is_an_address(url: str, named: str, port: int, path: str) -> None:
    found = Address.of(url)
    assert (found.named, found.port, found.path) == (named, port, path)
    assert found.secure == url.startswith("https:")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8765",
        "ftp://a",
        "http://",
        "http://a:x",
        "http://a?b=c",
        "a.example",
        "http://u:secret@a",
        "http://a\nb",
    ],
)
def test_what_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^AAICLICK_COORDINATOR_URL") as refused:
        Address.of(url, "AAICLICK_COORDINATOR_URL")
    assert "secret" not in str(refused.value)
