"""From a request to a query."""

from __future__ import annotations

import io
from urllib.parse import urlencode

import pytest

from aaiclick.data.gateway import requests
from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.http.request_reader import BadRequest, Body, Head, read_head
from aaiclick.data.gateway.queries import GatewayQuery
from aaiclick.data.gateway.requests import choose_query_id, flag, number, read_query


def head_of(sent: bytes = b"", headers: str = "", **params: str) -> Head:
    lines = f"POST /?{urlencode(params)} HTTP/1.1\r\nContent-Length: {len(sent)}\r\n{headers}\r\n"
    found = read_head(io.BytesIO(lines.encode()))
    assert found is not None
    return found


def query_of(sent: bytes = b"", headers: str = "", **params: str) -> GatewayQuery:
    head = head_of(sent, headers, **params)
    return read_query(head, Body(io.BytesIO(sent), head, lambda: None), "id")


def test_the_query_is_in_the_body_or_in_the_address_or_in_both() -> None:
    assert query_of(b"SELECT 1").sql == b"SELECT 1"
    assert query_of(query="SELECT 1").sql.strip() == b"SELECT 1"
    assert query_of(b", 2", query="SELECT 1").sql == b"SELECT 1\n, 2"


def test_parameters_settings_and_what_is_for_the_way_are_told_apart() -> None:
    query = query_of(b"SELECT 1", param_a="x", max_threads="2", wait_end_of_query="1", database="d", log_comment="c")
    assert (query.params, query.settings, query.database) == ({"a": "x"}, {"max_threads": "2"}, "d")


@pytest.mark.parametrize(
    ("params", "sent", "head", "format", "data"),
    [
        ({"query": "INSERT INTO t FORMAT CSV"}, b"1,2", b"INSERT INTO t ", "CSV", b"1,2"),
        ({"query": "INSERT INTO t VALUES"}, b"(1)", b"INSERT INTO t ", "Values", b"(1)"),
        ({"query": "INSERT INTO t VALUES (1),"}, b"(2)", b"INSERT INTO t ", "Values", b" (1),(2)"),
        ({"query": "INSERT INTO t (a)"}, b"(1)", b"INSERT INTO t (a)", "Values", b"(1)"),
        ({"query": "INSERT INTO t FORMAT CSV\n0,0\n"}, b"1,2", b"INSERT INTO t ", "CSV", b"0,0\n1,2"),
        ({}, b"INSERT INTO t FORMAT CSV\n1,2", b"INSERT INTO t ", "CSV", b"1,2"),
    ],
)
def test_the_data_of_an_insert(params: dict[str, str], sent: bytes, head: bytes, format: str, data: bytes) -> None:
    query = query_of(sent, **params)
    assert query.insert is not None
    assert (query.insert.head, query.insert.format, b"".join(query.data)) == (head, format, data)


def test_a_short_insert_of_values_is_left_to_the_engine() -> None:
    assert query_of(b"INSERT INTO t VALUES ({a:UInt8})", param_a="1").insert is None


def test_a_long_insert_of_values_is_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "INSERT_HEAD_BYTES_MAX", 20)
    query = query_of(b"INSERT INTO t VALUES (1), (2)")
    assert query.insert is not None
    assert b"".join(query.data) == b" (1), (2)"


def test_an_insert_from_a_query_has_no_data() -> None:
    assert query_of(query="INSERT INTO t SELECT 1").insert is None


def test_the_data_of_an_insert_is_not_read_before_it_is_taken() -> None:
    head = head_of(b"x" * 10, query="INSERT INTO t FORMAT CSV")
    reader = io.BytesIO(b"1,2345678\n")
    query = read_query(head, Body(reader, head, lambda: None), "id")
    assert reader.tell() == 0
    assert b"".join(query.data) == b"1,2345678\n"


def test_a_query_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "INSERT_HEAD_BYTES_MAX", 5)
    monkeypatch.setattr(requests, "SQL_BYTES_MAX", 10)
    with pytest.raises(BadRequest) as refused:
        query_of(b"SELECT 1234567890")
    assert refused.value.status == 413


@pytest.mark.parametrize(
    ("sent", "params", "code"),
    [
        (b"", {}, 62),
        (b" \n", {}, 62),
        (b"SELECT 1", {"decompress": "1"}, 271),
        (b"SELECT 1", {"default_format": "CSV; DROP"}, 73),
    ],
)
def test_what_cannot_be_asked_is_refused(sent: bytes, params: dict[str, str], code: int) -> None:
    with pytest.raises(Fault) as refused:
        query_of(sent, **params)
    assert refused.value.code == code


def test_the_format_may_be_given_in_a_header() -> None:
    assert query_of(b"SELECT 1", "X-ClickHouse-Format: CSV\r\n").default_format == "CSV"
    assert query_of(b"SELECT 1", "X-ClickHouse-Format: CSV\r\n", default_format="JSON").default_format == "JSON"


def test_the_id_of_a_query() -> None:
    assert choose_query_id(head_of(query_id="mine")) == "mine"
    assert choose_query_id(head_of()) != choose_query_id(head_of())
    with pytest.raises(BadRequest):
        choose_query_id(head_of(query_id="a\r\nSet-Cookie: b"))


def test_flags_and_numbers() -> None:
    head = head_of(yes="1", also="true", no="0", many="2.5", bad="x")
    assert [flag(head, name) for name in ("yes", "also", "no", "missing")] == [True, True, False, False]
    assert (number(head, "many", 1), number(head, "missing", 1)) == (2.5, 1)
    with pytest.raises(Fault):
        number(head, "bad", 1)
