"""The page of the manual with all routes."""

from __future__ import annotations

from pathlib import Path

from aaiclick.server.app import create_app
from aaiclick.server.documents import document
from aaiclick.server.reference import rest_markdown

PAGE = Path(__file__).parents[2] / "docs/reference/rest.md"


def test_the_page_of_the_manual_is_up_to_date() -> None:
    assert PAGE.read_text() == rest_markdown(), "run: python -m aaiclick.server.reference > docs/reference/rest.md"


def test_every_route_is_on_it() -> None:
    page = rest_markdown()
    for path, methods in document(create_app())["paths"].items():
        for method in methods:
            assert f"### {method.upper()} {path}\n" in page
