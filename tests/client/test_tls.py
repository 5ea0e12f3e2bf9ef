"""TLS on the way to a server."""

from __future__ import annotations

import ssl

import pytest

from aaiclick.client.tls import secured
from aaiclick.errors import ConfigError
from aaiclick.server_address import Address


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
