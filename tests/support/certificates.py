"""Certificates of an authority that a test makes."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Authority:
    """An authority with its files in one directory."""

    directory: Path
    name: str

    @property
    def cert(self) -> Path:
        return self.directory / f"{self.name}.crt"

    def issue(self, name: str) -> Path:
        """A certificate for this name and for 127.0.0.1; gives the file with it and its key."""
        key, request, made = (self.directory / f"{name}.{end}" for end in ("key", "csr", "crt"))
        alternatives = self.directory / f"{name}.ext"
        alternatives.write_text(f"subjectAltName=DNS:{name},DNS:localhost,IP:127.0.0.1\n")
        _openssl("req", "-new", *NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        authority = ("-CA", self.cert, "-CAkey", self.directory / f"{self.name}.key", "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *authority, "-out", made, "-days", "2", "-extfile", alternatives)
        both = self.directory / f"{name}.pem"
        both.write_bytes(made.read_bytes() + key.read_bytes())
        return both


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def authority(directory: Path, name: str = "ca") -> Authority:
    """Make an authority."""
    directory.mkdir(parents=True, exist_ok=True)
    made = Authority(directory, name)
    key = directory / f"{name}.key"
    _openssl("req", "-x509", *NEW_KEY, "-keyout", key, "-out", made.cert, "-subj", f"/CN={name}", "-days", "2")
    return made


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
