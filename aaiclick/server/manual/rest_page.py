"""The page of the manual with all routes, made from the document of the interface.

The page is written anew by: python -m aaiclick.server.manual.rest_page > docs/reference/rest.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from aaiclick.server.app import create_app
from aaiclick.server.openapi import WHY, document

HEAD = """# REST

Generated from the server's OpenAPI document, which it serves at `/api/v1/openapi.json`. See
[HTTP server and agents](../guides/server.md) for tokens, roles and examples. Ids are strings. A page's `next` is the
`before` or `after` of the page that follows; null means that there is none. An answer with an `ETag` becomes
304 for a client that has it already (`If-None-Match`). A slash in a name is written `%2F` in an address:
`GET /api/v1/nodes/rack%2F7` shows the node `rack/7`. A proxy between must pass it on as it is.

Every route but the probes may answer 401, 403, 413, 422, 500 and 503. Every GET takes `min_seq`, the id of an event
that its answer is to include, else it answers 412; changes are answered with the newest event in `Aaiclick-As-Of-Seq`.
A [replica](../guides/replicas.md) answers changes with 421. All problems are `application/problem+json`
(RFC 9457):
"""


def rest_markdown() -> str:
    """The page docs/reference/rest.md."""
    whole = document(create_app())
    return "\n".join([HEAD, *_problems(), *_routes(whole), *_models(whole)]) + "\n"


def _problems() -> Iterator[str]:
    yield "| status | means |"
    yield "|---|---|"
    yield from (f"| {status} | {why} |" for status, why in WHY.items())


def _routes(whole: dict[str, Any]) -> Iterator[str]:
    room = None
    for path, methods in whole["paths"].items():
        for method, facts in methods.items():
            if facts["tags"][0] != room:
                room = facts["tags"][0]
                yield f"\n## {room.capitalize()}"
            yield f"\n### {method.upper()} {path}\n"
            yield " ".join(facts["description"].split())
            yield from _details(facts)


def _details(facts: dict[str, Any]) -> Iterator[str]:
    yield ""
    for each in facts.get("parameters", ()):
        need = "required" if each.get("required") else "optional"
        words = each.get("description") or each["schema"].get("description") or ""
        yield f"- `{each['name']}` ({each['in']}, {need}){': ' if words else ''}{words}"
    if "requestBody" in facts:
        yield f"- body: {_named(facts['requestBody']['content']['application/json']['schema'])}"
    for status, told in facts["responses"].items():
        if status.startswith(("2", "3")):
            yield f"- {status}: {_answered(told)}"
    if also := [status for status in facts["responses"] if status in ("400", "404", "409")]:
        yield f"- problems: {', '.join(also)}"


def _answered(told: dict[str, Any]) -> str:
    for kind, content in told.get("content", {}).items():
        if "$ref" in content.get("schema", {}):
            return _named(content["schema"])
        return f"`{kind}`. {told['description']}"
    return str(told["description"])


def _named(schema: dict[str, Any]) -> str:
    found = schema.get("$ref") or next(each["$ref"] for each in schema["anyOf"] if "$ref" in each)
    name = found.rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


def _models(whole: dict[str, Any]) -> Iterator[str]:
    yield "\n## Requests and answers"
    for name, schema in sorted(whole["components"]["schemas"].items()):
        yield f"\n### {name}\n"
        yield " ".join(schema.get("description", "").split())
        yield ""
        needed = schema.get("required", ())
        for field, facts in schema.get("properties", {}).items():
            words = facts.get("description", "")
            yield f"- `{field}`: {_kind(facts)}{'' if field in needed else ', optional'}{'. ' if words else ''}{words}"


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return _named(schema)
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    return str(schema.get("format") or schema.get("type") or "anything")


if __name__ == "__main__":
    sys.stdout.write(rest_markdown())
