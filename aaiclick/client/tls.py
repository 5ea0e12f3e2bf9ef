"""TLS on the way to a server."""

from __future__ import annotations

import ssl

from aaiclick.errors import ConfigError
from aaiclick.server_address import Address


def secured(address: Address, verify: bool | str | ssl.SSLContext) -> ssl.SSLContext | None:
    """Return how TLS is checked: by the machine's authorities, those of a file, not at all, or as a context says."""
    if not address.secure:
        return None
    if isinstance(verify, ssl.SSLContext):
        return verify
    try:
        made = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    except OSError as error:
        rule = f"the certificates cannot be read: {error.strerror or error}"
        raise ConfigError(setting="verify", value=repr(verify), rule=rule, hint="Name a file in PEM format.") from None
    if verify is False:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made
