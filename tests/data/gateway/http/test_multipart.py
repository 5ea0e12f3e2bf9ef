"""Forms, and the tables that come with a query."""

from __future__ import annotations

import pytest

from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.http import multipart
from aaiclick.data.gateway.http.multipart import is_form, read_form, take_tables
from aaiclick.data.gateway.http.request_reader import BadRequest

KIND = 'multipart/form-data; boundary="cut"'


def part(name: str, value: bytes, more: str = "") -> bytes:
    return f'--cut\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + value + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--cut--\r\n"


def test_fields_and_files_are_told_apart() -> None:
    body = form(part("query", b"SELECT 1"), part("t", b"1\r\n--cu\r\n\r\n", '; filename="t.csv"'))
    found = read_form(KIND, [body[:30], body[30:]])
    assert found.fields == {"query": "SELECT 1"}
    assert found.files == {"t": b"1\r\n--cu\r\n\r\n"}


def test_what_is_a_form() -> None:
    assert is_form(KIND)
    assert not is_form("application/x-www-form-urlencoded")  # so curl labels any body


@pytest.mark.parametrize("body", [b"", b"nonsense", part("a", b"1"), b"--cut\r\n\r\nx\r\n--cut--"])
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_form(KIND, [body])


def test_a_form_without_a_boundary_is_refused() -> None:
    with pytest.raises(BadRequest):
        read_form("multipart/form-data", [form()])


def test_a_form_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "FORM_BYTES_MAX", 10)
    with pytest.raises(BadRequest) as refused:
        read_form(KIND, [form(part("a", b"1"))])
    assert refused.value.status == 413


def test_a_table_takes_what_the_parameters_say_about_it() -> None:
    params = {"t_structure": "a UInt8, b String", "t_format": "CSV", "other": "1"}
    (table,) = take_tables({"t": b"1,x\n"}, params)
    assert (table.name, table.structure, table.format, table.rows) == ("t", "a UInt8, b String", "CSV", b"1,x\n")
    assert params == {"other": "1"}


def test_the_columns_of_a_table_may_be_given_by_types_alone() -> None:
    (table,) = take_tables({"t": b""}, {"t_types": "UInt8,Tuple(a Int8, b String),String"})
    assert table.structure == "_1 UInt8, _2 Tuple(a Int8, b String), _3 String"
    assert table.format == "TabSeparated"


@pytest.mark.parametrize(("name", "params"), [("t", {}), ("a b", {"a b_types": "UInt8"}), ("", {"_types": "UInt8"})])
def test_a_table_without_columns_or_name_is_refused(name: str, params: dict[str, str]) -> None:
    with pytest.raises(Fault) as refused:
        take_tables({name: b""}, params)
    assert refused.value.code == 36
