"""What the log says of a request."""

from __future__ import annotations

import logging

import pytest

from aaiclick.server.transport.access_log import MaskAccess, shown_address, shown_path

TOKEN = "aai_123_" + "S" * 43


@pytest.mark.parametrize(
    "address",
    [
        f"/api/v1/jobs?token={TOKEN}",
        f"/api/v1/jobs?limit=1&TOKEN={TOKEN}&x=1",
        f"/api/v1/jobs?%74oken={TOKEN}",
        f"/api/v1/jobs?%2574oken={TOKEN}",
        f"/api/v1/jobs?%54%4f%4b%45%4e={TOKEN}",
        f"/api/v1/jobs?{TOKEN}",
        f"/api/v1/jobs?limit={TOKEN}",
        f"/api/v1/jobs?name_like=%61%61%69_123_{'S' * 43}",
        f"/api/v1/jobs?a;token={TOKEN}",
        f"/api/v1/jobs?t%00oken={TOKEN}",
        f"/api/v1/registered-jobs/{TOKEN}",
        f"/api/v1/registered-jobs/%61ai_123_{'S' * 43}",
        f"/?a=b?token={TOKEN}",
        "/?access_token=SSSSSSSSSS&password=SSSSSSSSSS&key=SSSSSSSSSS&auth=SSSSSSSSSS&tok%65n=SSSSSSSSSS",
    ],
)
def test_no_token_is_in_it(address: str) -> None:
    assert "SSSSSSSSSS" not in shown_address(address)


def test_what_is_ours_can_be_read() -> None:
    asked = "/api/v1/jobs?limit=5&status=failed&before=7"
    assert shown_address(asked) == asked
    assert shown_address("/a?token=x&limit=3") == "/a?token=***&limit=3"
    assert shown_address("/a?\x1b=\x1b") == "/a?\\x1b=***"
    assert shown_path("/a\n/b") == "/a\\x0a/b"


def test_lines_about_requests_are_masked() -> None:
    given = ("127.0.0.1:1", "GET", f"/jobs?token={TOKEN}", "1.1", 401)
    record = logging.LogRecord("uvicorn.access", logging.INFO, "x", 1, '%s - "%s %s HTTP/%s" %d', given, None)
    assert MaskAccess().filter(record)
    assert record.getMessage() == '127.0.0.1:1 - "GET /jobs?token=*** HTTP/1.1" 401'
