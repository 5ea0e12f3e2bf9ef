"""Multipart forms: the fields of a request, and the external tables that are sent as files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from aaiclick.data.gateway.faults import fault
from aaiclick.data.gateway.http.request_reader import BadRequest

FORM_BYTES_MAX = 1 << 28

_BOUNDARY = re.compile(r'boundary="?([^";]+)', re.I)
_NAME = re.compile(rb'[; ]name="((?:[^"\\]|\\.)*)"')
_FILE_NAME = re.compile(rb'[; ]filename="')
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class ExternalTable:
    """Rows that are sent with a query, as a table for that query alone."""

    name: str
    structure: str
    format: str
    rows: bytes


@dataclass(frozen=True)
class Form:
    """The fields and files of a form, by their names."""

    fields: dict[str, str]
    files: dict[str, bytes]


def is_form(content_type: str) -> bool:
    return content_type.lower().startswith("multipart/form-data")


def read_form(content_type: str, pieces: Iterable[bytes]) -> Form:
    """Read a form into memory; raise BadRequest if it is larger than FORM_BYTES_MAX."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise BadRequest(400, "The form names no boundary.")
    form = Form({}, {})
    for part in _parts(_gather(pieces), b"--" + boundary[1].strip().encode("latin-1")):
        head, _, value = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if name is None:
            raise BadRequest(400, "A part of the form has no name.")
        if _FILE_NAME.search(head):
            form.files[_text(name[1])] = value
        else:
            form.fields[_text(name[1])] = _text(value)
    return form


def take_tables(files: dict[str, bytes], params: dict[str, str]) -> list[ExternalTable]:
    """Return the files as tables; the parameters that describe them are removed from `params`."""
    return [_table(name, rows, params) for name, rows in files.items()]


def _table(name: str, rows: bytes, params: dict[str, str]) -> ExternalTable:
    if not _WORD.fullmatch(name):
        raise fault(36, "BAD_ARGUMENTS", f"External table {name!r} has no proper name.")
    structure, types = params.pop(f"{name}_structure", ""), params.pop(f"{name}_types", "")
    if types and not structure:
        structure = ", ".join(f"_{at} {kind}" for at, kind in enumerate(_split_types(types), 1))
    if not structure:
        raise fault(36, "BAD_ARGUMENTS", f"Neither structure nor types are given for external table {name}.")
    return ExternalTable(name, structure, params.pop(f"{name}_format", "TabSeparated"), rows)


def _split_types(types: str) -> list[str]:
    """Split at commas outside of parentheses."""
    found, depth = [""], 0
    for sign in types:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [kind.strip() for kind in found]


def _gather(pieces: Iterable[bytes]) -> bytes:
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) > FORM_BYTES_MAX:
            raise BadRequest(413, f"The form is larger than {FORM_BYTES_MAX} bytes.")
    return bytes(gathered)


def _parts(body: bytes, mark: bytes) -> list[bytes]:
    """Return the parts between the marks, without the line ends that belong to the marks."""
    _, *rest = (b"\r\n" + body).split(b"\r\n" + mark)
    if not rest or not rest[-1].startswith(b"--"):
        raise BadRequest(400, "The form breaks off.")
    return [part.removeprefix(b"\r\n") for part in rest[:-1]]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
