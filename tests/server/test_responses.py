"""Answers with a tag."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from aaiclick.server.responses import answer, to_json


def asking(tag: str | None = None, method: str = "GET") -> Request:
    headers = [] if tag is None else [(b"if-none-match", tag.encode())]
    return Request({"type": "http", "method": method, "headers": headers})


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_whoever_has_it_gets_nothing(form: str) -> None:
    tag = answer(asking(), {}).headers["etag"]
    again = answer(asking(form.format(tag)), {})
    assert (again.status_code, bytes(again.body), again.headers["etag"]) == (304, b"", tag)


def test_another_body_another_tag() -> None:
    tag = answer(asking(), {}).headers["etag"]
    assert answer(asking(tag), {"is": "another"}).status_code == 200
    assert answer(asking(tag, "POST"), {}).status_code == 200
    assert answer(asking(tag), {}, status=201).status_code == 201


def test_what_json_cannot_say() -> None:
    assert to_json({"é": [2**80, float("nan"), None]}) == '{"é":[1208925819614629174706176,null,null]}'.encode()
