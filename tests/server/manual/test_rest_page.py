"""The page of the manual with all routes."""

from __future__ import annotations

from pathlib import Path

from aaiclick.server.app import create_app
from aaiclick.server.manual.rest_page import rest_markdown
from aaiclick.server.openapi import document

PAGE = Path(__file__).parents[3] / "docs/reference/rest.md"


def test_the_page_of_the_manual_is_up_to_date() -> None:
    assert PAGE.read_text() == rest_markdown(), (
        "run: python -m aaiclick.server.manual.rest_page > docs/reference/rest.md"
    )


def test_every_route_is_on_it() -> None:
    page = rest_markdown()
    for path, methods in document(create_app())["paths"].items():
        for method in methods:
            assert f"### {method.upper()} {path}\n" in page
