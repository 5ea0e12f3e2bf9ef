"""Names with a slash in addresses: written as `%2F`, it stays inside its part of the path.

A path arrives decoded, and a slash in a name would divide it. So until the route is found, a character stands for it
that no decoded path contains.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.types import Scope

STAND_IN = "\udc2f"
"""A lone surrogate: decoding gives none, since bytes that are not UTF-8 are replaced."""

_ENCODED = re.compile(b"%2f", re.IGNORECASE)


def with_stand_ins(scope: Scope) -> Scope:
    """Return the scope of a request, in whose path a character stands for each slash that was sent encoded."""
    parts = _ENCODED.split((scope.get("raw_path") or b"").partition(b"?")[0])
    if len(parts) == 1:
        return scope
    return {**scope, "path": STAND_IN.join(unquote(part.decode("latin-1")) for part in parts)}


def with_slashes(name: object) -> object:
    """Return a part of a path with its slashes."""
    return name.replace(STAND_IN, "/") if isinstance(name, str) else name
