"""The answer to a callback as JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class CallbackAnswer(TypedDict):
    """What became of a callback."""

    accepted: bool
    repeated: bool
