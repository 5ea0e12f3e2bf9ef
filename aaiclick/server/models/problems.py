"""What is answered when something went wrong."""

from __future__ import annotations

from pydantic import BaseModel, Field


class WrongField(BaseModel):
    """One field that was not accepted."""

    field: str
    rule: str
    value: str | None = None


class Problem(BaseModel):
    """What went wrong, as RFC 9457 says it."""

    type: str = Field(examples=["urn:aaiclick:problem:NotFound"])
    title: str
    status: int
    detail: str
    errors: list[WrongField] | None = None
