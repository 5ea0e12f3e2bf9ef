"""Functions whose annotations say what their arguments are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict
from uuid import UUID

import pydantic

from aaiclick.orchestration import job, task

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Order:
    number: int
    colour: Colour = Colour.RED
    tags: list[str] = field(default_factory=list)


class Model(pydantic.BaseModel):
    when: date
    size: int = 1


class Row(TypedDict):
    id: int
    name: str


@task
def all_kinds(
    day: date = date(2026, 1, 1),
    at: datetime | None = None,
    took: timedelta | None = None,
    key: UUID | None = None,
    place: Path | None = None,
    price: Decimal | None = None,
    colour: Colour = Colour.RED,
    order: Order | None = None,
    orders: dict[str, list[Order]] | None = None,
    model: Model | None = None,
    row: Row | None = None,
    mode: Literal["fast", "slow"] = "fast",
    ratio: float = 1.0,
    count: int = 1,
    flag: Optional[bool] = None,  # noqa: UP045 as older code writes it
    pair: tuple[int, str] | None = None,
    ids: set[int] | None = None,
    by_number: dict[int, str] | None = None,
    loose: date | str = "",
    anything: Any = None,
    bare=None,
) -> Any:
    return {name: value for name, value in locals().items() if value is not None}


@task
def unresolved(x: Missing, y: int = 0) -> Any:
    return x


@job
def shipped(order: Order, day: date) -> Any:
    return all_kinds(order=order, day=day)
