"""Quotas of concurrent requests or streams: a limit for all, one per token, and some kept for tokens that have few.

So neither one token nor a few together can keep another one out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

AGAIN = {"Retry-After": "5"}

PLACE = "place"
"""Key in a request's state of its place, an ExitStack: closed when the request becomes a stream, which has its own."""


@dataclass
class TokenQuotas:
    """The places of one kind, and how many of them each token holds."""

    what: str
    most: int
    each: int
    kept: int
    """The number of places kept for tokens that hold fewer than `few`."""
    few: int
    taken: Counter[int] = field(default_factory=Counter)
    number: int = 0

    @contextmanager
    def of(self, token_id: int) -> Iterator[None]:
        """Hold a place for this token inside the block; raise HTTPException 429 or 503 if there is none for it."""
        own = self.taken[token_id]
        if own >= self.each:
            raise HTTPException(429, f"This token has {own} {self.what} already, which is the limit per token.", AGAIN)
        if self.number >= self.most:
            raise HTTPException(503, f"There are {self.number} {self.what} already, which is the limit.", AGAIN)
        if self.number >= self.most - self.kept and own >= self.few:
            detail = f"This token has {own} {self.what} already; the last {self.kept} are reserved for other tokens."
            raise HTTPException(429, detail, AGAIN)
        self.number += 1
        self.taken[token_id] += 1
        try:
            yield
        finally:
            self.number -= 1
            self.taken[token_id] -= 1
            if not self.taken[token_id]:
                del self.taken[token_id]
