"""Answers with a tag."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from aaiclick.server.answers import answer


def asking(tag: str | None = None, method: str = "GET") -> Request:
    headers = [] if tag is None else [(b"if-none-match", tag.encode())]
    return Request({"type": "http", "method": method, "headers": headers})


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_whoever_has_it_gets_nothing(form: str) -> None:
    tag = answer(asking(), b"{}").headers["etag"]
    again = answer(asking(form.format(tag)), b"{}")
    assert (again.status_code, bytes(again.body), again.headers["etag"]) == (304, b"", tag)


def test_another_body_another_tag() -> None:
    tag = answer(asking(), b"{}").headers["etag"]
    assert answer(asking(tag), b"[]").status_code == 200
    assert answer(asking(tag, "POST"), b"{}").status_code == 200
    assert answer(asking(tag), b"{}", status=201).status_code == 201
