"""Types of all kinds whose values travel, and the question whether one came back exactly."""

from __future__ import annotations

import enum
import math
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
import pydantic

T = TypeVar("T")
Point = namedtuple("Point", "x y")


class Place(NamedTuple):
    name: str
    at: Point = Point(0, 0)


class Colour(enum.Enum):
    RED = 1
    GREEN = "green"
    BOTH = (1, "x")
    NOTHING = None
    SCARLET = 1  # noqa: PIE796 another name of the same


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2**70


class Word(enum.StrEnum):
    HELLO = "hello"


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3


class Bits(enum.IntFlag):
    ONE = 1
    FOUR = 4


@dataclass
class Config:
    rate: float = 0.5
    tags: list[str] = field(default_factory=list)
    when: date | None = None
    parent: Config | None = None

    class Inner(enum.Enum):
        A = "a"


@dataclass(frozen=True, slots=True)
class Frozen:
    x: int
    y: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MoreFrozen(Frozen):
    z: Colour = Colour.RED


@dataclass
class Derived(Config):
    total: int = field(init=False)
    seen: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = len(self.tags)
        self.noted = {"by": "post_init"}


@dataclass
class Unfinished:
    x: int
    y: int = field(init=False)


@dataclass
class Box(Generic[T]):
    item: T


class Struct(msgspec.Struct, frozen=True):
    a: int
    b: list[str] = []
    c: int | msgspec.UnsetType = msgspec.UNSET


class Loud(msgspec.Struct):
    a: int

    def __post_init__(self) -> None:
        self.a += 1


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int
    b: date | None = None
    _secretly: int = pydantic.PrivateAttr(default=7)


class Root(pydantic.RootModel[list[int]]):
    pass


class MyInt(int):
    pass


class MyList(list[int]):
    pass


class MyDict(dict[str, int]):
    pass


@dataclass
class ListWithFields(list[int]):
    x: int = 0


class Money:
    def __init__(self, amount: int, currency: str) -> None:
        self.amount, self.currency = amount, currency

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((self.amount, self.currency))

    def __repr__(self) -> str:
        return f"Money({self.amount}, {self.currency!r})"


def same(one: Any, other: Any) -> bool:
    """Equal, with equal types all the way down, and what == does not see: zero's sign, NaN, zones and folds."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return (
            len(one) == len(other)
            and getattr(one, "default_factory", None) is getattr(other, "default_factory", None)
            and all(same(k1, k2) for k1, k2 in zip(one, other, strict=True))
            and all(same(v1, v2) for v1, v2 in zip(one.values(), other.values(), strict=True))
        )
    if isinstance(one, list | tuple | deque):
        together = zip(one, other, strict=True) if len(one) == len(other) else ()
        return len(one) == len(other) and all(same(a, b) for a, b in together)
    if type(one) in (set, frozenset):
        return sorted(map(described, one)) == sorted(map(described, other))
    if type(one) is float:
        both_nan = math.isnan(one) and math.isnan(other)
        return (both_nan or one == other) and math.copysign(1, one) == math.copysign(1, other)
    if isinstance(one, Decimal | np.generic):
        return repr(one) == repr(other)
    if hasattr(one, "__dict__") and not isinstance(one, enum.Enum):
        return same(vars(one), vars(other))
    return (one == other or one != one) and (type(one) is int or repr(one) == repr(other))


def described(value: object) -> str:
    return f"{type(value).__qualname__} {value!r}" if type(value) is not int else f"int {value:x}"


SPECIAL: list[object] = [
    float("nan"),
    -float("nan"),
    float("inf"),
    [-float("inf"), {"x": float("nan")}],
    "a\0b",
    "\ud800",
    "\ud83d\ude00",
    {"a\0": 1, "\udfff": ["\0"]},
    {("\0",): "\0"},
    complex(-0.0, float("inf")),
    range(2**70, -5, -3),
    bytearray(b"\0\xff"),
    deque([1, (2,)], maxlen=5),
    deque(),
    Counter({"a": 2, 3: -1}),
    OrderedDict([("b", 1), ("a", (2,))]),
    defaultdict(list, {"a": [1], 2: []}),
    defaultdict(None, {1: 2}),
    Point(1, [Point(2, ())]),
    Place("here"),
    {Point(1, 2): Place("x", Point(3, 4))},
    *Colour,
    Config.Inner.A,
    [Level.LOW, Level.HIGH, Word.HELLO],
    {Colour.RED: {Word.HELLO, Level.LOW}},
    Right.READ | Right.WRITE,
    Right(0),
    Bits.ONE | Bits.FOUR,
    Bits(8),
    Config(),
    Config(float("nan"), ["\0"], date(2026, 1, 1), Config(1)),
    {Frozen(1, (2, 3)): MoreFrozen(1)},
    {Frozen(1), Frozen(2, (3,))},
    Derived(tags=["a"]),
    Unfinished(3),
    Box(Box({1, 2})),
    Struct(1, ["x"]),
    Struct(1, c=2),
    Loud(1),
    Model(a=1),
    Model(a=1, b=None, more=(1, 2)),  # type: ignore[call-arg]
    Model.model_construct(a="not checked"),
    Root([1, 2]),
]
