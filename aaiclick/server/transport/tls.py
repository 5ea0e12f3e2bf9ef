"""TLS of the server: its certificate, and optionally an authority whose certificates all callers must have."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, NamedTuple

from aaiclick.errors import InputError


class Tls(NamedTuple):
    """Files in PEM: the certificate, its key (None: in the same file), and the authority of callers (None: anybody)."""

    cert: Path
    key: Path | None = None
    client_ca: Path | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of uvicorn; raise InputError for files that cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.cert, self.key)
        except OSError as error:  # also of ssl
            raise _refused("--tls-cert", self.cert, error) from None
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except OSError as error:
                raise _refused("--tls-client-ca", self.client_ca, error) from None
        return {
            "ssl_certfile": str(self.cert),
            "ssl_keyfile": None if self.key is None else str(self.key),
            "ssl_ca_certs": None if self.client_ca is None else str(self.client_ca),
            "ssl_cert_reqs": ssl.CERT_NONE if self.client_ca is None else ssl.CERT_REQUIRED,
        }


def chosen_tls(cert: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    """Return what was chosen; raise InputError if there is no certificate for the rest."""
    if cert is not None:
        return Tls(cert, key, client_ca)
    if key is not None or client_ca is not None:
        hint = "Give the server's certificate with --tls-cert."
        raise InputError(field="--tls-cert", value="nothing", rule="the others need it", hint=hint)
    return None


def _refused(field: str, path: Path, error: OSError) -> InputError:
    cause = error.strerror or str(error) or type(error).__name__
    hint = "It is a file in PEM; --tls-key may be left out if the key is in the same file."
    return InputError(field=field, value=str(path)[:200], rule=f"it cannot be used: {cause}", hint=hint)
