"""Places that tokens take: so many in all, so many for each, and the last ones for those who have few.

One token can neither take all of them, nor can a few of them together keep another one out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

AGAIN = {"Retry-After": "5"}

PLACE = "place"
"""In a request's state: to be closed when it becomes an answer that stays open, which has places of its own."""


@dataclass
class TokenQuotas:
    """Places of one kind, and who has taken how many of them."""

    what: str
    most: int
    each: int
    kept: int
    """The last places, for tokens that have fewer than `few`."""
    few: int
    taken: Counter[int] = field(default_factory=Counter)
    number: int = 0

    @contextmanager
    def of(self, token_id: int) -> Iterator[None]:
        """A place for this token inside the block; refused where it has too many, or there is none."""
        own = self.taken[token_id]
        if own >= self.each:
            raise HTTPException(429, f"This token has {own} {self.what} already, as many as one may have.", AGAIN)
        if self.number >= self.most:
            raise HTTPException(503, f"There are {self.number} {self.what} already, as many as there may be.", AGAIN)
        if self.number >= self.most - self.kept and own >= self.few:
            detail = f"This token has {own} {self.what} already; the last {self.kept} are kept for others."
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
