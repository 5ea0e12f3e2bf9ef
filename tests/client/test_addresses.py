"""Addresses of servers, and TLS on the way to them."""

from __future__ import annotations

import ssl

import pytest

from aaiclick.client.addresses import Address, secured
from aaiclick.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "named", "port", "path"),
    [
        ("http://127.0.0.1:8765", "127.0.0.1:8765", 8765, ""),
        ("http://localhost:8765/api/v1", "localhost:8765", 8765, ""),
        ("https://a.example.com/", "a.example.com", 443, ""),
        ("https://a.example.com:8443/flows/", "a.example.com:8443", 8443, "/flows"),
        ("http://[::1]:80", "[::1]", 80, ""),
    ],
)
def test_what_is_an_address(url: str, named: str, port: int, path: str) -> None:
    found = Address.of(url)
    assert (found.named, found.port, found.path) == (named, port, path)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8765", "ftp://a", "http://", "http://a:x", "http://a?b=c", "http://u:secret@a", "http://a\nb"],
)
def test_what_is_none(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Address.of(url)
    assert "secret" not in str(refused.value)


def test_certificates_are_checked_unless_told_otherwise() -> None:
    address = Address.of("https://a.example.com")
    checked, unchecked = secured(address, True), secured(address, False)
    assert checked is not None
    assert unchecked is not None
    assert (checked.verify_mode, checked.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert unchecked.verify_mode == ssl.CERT_NONE
    own = ssl.create_default_context()
    assert secured(address, own) is own
    assert secured(Address.of("http://a"), True) is None
    with pytest.raises(ConfigError, match="verify"):
        secured(address, "/nowhere/ca.pem")
