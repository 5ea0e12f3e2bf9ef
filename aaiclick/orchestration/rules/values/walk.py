"""`Walk`: encodes a value as plain JSON, with marks for the parts that JSON cannot represent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from aaiclick.errors import ValueNotPortable, ValueTooLarge
from aaiclick.orchestration.rules.validation import is_storable, shorten, shown
from aaiclick.orchestration.rules.values.arrays import is_array, lower_array
from aaiclick.orchestration.rules.values.class_names import Unreadable
from aaiclick.orchestration.rules.values.fields import lower_class
from aaiclick.orchestration.rules.values.plain_kinds import LOWER, Sealed, has_text_keys, is_plain, is_simple, ordered
from aaiclick.orchestration.rules.values.refusals import why_not
from aaiclick.orchestration.rules.values.registry import Registered, home_of, registered

DEPTH_MAX = 100
SIZE_SETTING = "AAICLICK_VALUE_BYTES_MAX"
BLOB_SETTING = "AAICLICK_BLOB_BYTES_MAX"

Mark = Callable[[object], tuple[str, object] | None]


class Walk:
    """The state of one walk over a value.

    Inner marks come before outer ones, so that decoding can apply them in order. `room` is an upper bound of the bytes
    left: a small value that contains the same parts many times is refused before its encoding has grown.
    """

    __slots__ = ("bytes_max", "closed", "depth", "hashed", "label", "mark", "marks", "path", "room", "root", "setting")

    def __init__(self, root: object, label: str, bytes_max: int, mark: Mark | None, setting: str) -> None:
        self.root, self.label, self.mark, self.setting = root, label, mark, setting
        self.bytes_max = self.room = bytes_max
        self.path: list[str | int] = []
        self.marks: list[list[object]] = []
        self.depth = self.hashed = 0
        self.closed = 0
        """The number of enclosing values in which `secrets_in` does not search: a Secret there is refused."""

    def lower(self, value: object) -> object:
        if is_plain(value):
            if type(value) is str:
                self.spend(len(value))
            return value
        lower = LOWER.get(type(value))
        return self.foreign(value) if lower is None else lower(self, value)

    def spend(self, size: int) -> None:
        self.room -= size
        if self.room < 0:
            size = self.bytes_max - self.room
            raise ValueTooLarge(path=self.label, size=f"at least {size}", limit=self.bytes_max, setting=self.setting)

    def note(self, kind: str, *payload: object) -> None:
        self.marks.append([self.path.copy(), kind, *payload])

    def enter(self, size: int, *steps: str | int) -> None:
        self.spend(size)
        self.depth += 1
        if self.depth > DEPTH_MAX:
            self.refuse_depth()
        self.path.extend(steps)

    def leave(self, steps: int = 1) -> None:
        self.depth -= 1
        del self.path[len(self.path) - steps :]

    def items(self, values: list[object]) -> list[object]:
        path = self.path
        self.enter(len(values), 0)
        if is_simple(values):
            self.leave()
            self.spend(sum(len(value) for value in values if type(value) is str))
            return values
        lowered = []
        for index, value in enumerate(values):
            path[-1] = index
            lowered.append(self.lower(value))
        self.leave()
        return lowered

    def pairs(self, value: Mapping[Any, object]) -> list[list[object]]:
        self.enter(len(value), 0, 0)
        lowered = []
        for index, (key, item) in enumerate(value.items()):
            self.path[-2:] = index, 0
            self.hashed += 1
            pair = [self.lower(key)]
            self.hashed -= 1
            self.path[-1] = 1
            pair.append(self.lower(item))
            lowered.append(pair)
        self.leave(2)
        return lowered

    def fields(self, value: Mapping[str, object]) -> dict[str, object]:
        self.enter(len(value), "")
        lowered: dict[str, object] = {}
        for name, item in value.items():
            if not is_storable(name):
                self.path.pop()
                self.refuse(name, "its name has NUL or a lone surrogate", "Rename the attribute.")
            self.spend(len(name))
            self.path[-1] = name
            lowered[name] = self.lower(item)
        self.leave()
        return lowered

    def foreign(self, value: object) -> object:
        answer = self.mark(value) if self.mark else None
        if answer is None:
            return self.of_class(value)
        if self.hashed:
            self.refuse(value, "a reference cannot be in a set or be a key", "Put it into a list or a dict's values.")
        self.note(*answer)
        return None

    def of_class(self, value: object) -> object:
        """Lower a value whose type is registered, or of numpy, or fully described by its fields."""
        self.closed += 1
        try:
            if (how := registered(type(value))) is not None:
                return self.registered(value, how)
            return lower_array(self, value) if is_array(value) else lower_class(self, value)
        except LookupError as error:
            if error.args != (type(value),):
                raise
            self.refuse(value, *why_not(type(value)))
        except Unreadable as error:
            self.refuse(value, error.rule, error.hint)
        finally:
            self.closed -= 1

    def registered(self, value: object, how: Registered) -> object:
        try:
            stand_in = how.encode(value)
        except Exception as error:  # encode is the user's code
            rule = f"the encode of {how.name} raised {type(error).__name__}: {shorten(str(error))}"
            self.refuse(value, rule, "Correct the functions given to register_type.")
        self.enter(0)
        lowered = self.lower(stand_in)
        self.leave(0)
        self.note("type", how.name, home_of(how.cls))
        return lowered

    def sealed(self, value: Sealed) -> object:
        """Write a value that was not decoded in this process as it was stored."""
        lowered = self.lower(value.lowered)
        self.note(value.kind, *value.payload)
        return lowered

    def refuse(self, value: object, rule: str, hint: str = "") -> NoReturn:
        path = _written(self.label, _steps(self.root, self.path))
        raise ValueNotPortable(path=path, value=shown(value, path), rule=rule, hint=hint)

    def refuse_depth(self) -> NoReturn:
        way, seen = list(_steps(self.root, self.path)), {id(self.root)}
        rule = f"it is nested more than {DEPTH_MAX} levels deep"
        for length, (_, node) in enumerate(way, 1):
            if id(node) in seen:
                way, rule = way[:length], "it contains itself"
                break
            seen.add(id(node))
        path = _written(self.label, way)
        node = way[-1][1] if way else self.root
        raise ValueNotPortable(path=path, value=shown(node, path), rule=rule, hint="Pass a flat value.")


def _steps(root: object, path: list[str | int]) -> Iterator[tuple[str, object]]:
    """Yield the steps to a place inside a value: the text of each step, and the value it leads to."""
    node: Any = root
    steps = iter(path)
    for step in steps:
        if isinstance(node, dict) and not (type(node) is dict and has_text_keys(node)):
            entry, side = list(node.items())[int(step)], int(next(steps))
            written, node = f"[{shorten(entry[0], 40)}]" if side else " (a key)", entry[side]
        elif type(node) in (set, frozenset):
            written, node = "{…}", ordered(node)[int(step)]
        else:
            plain = type(step) is str and step.isidentifier()
            written, node = f".{step}" if plain else f"[{shorten(step, 40)}]", _at(node, step)
        yield written, node


def _at(node: Any, step: str | int) -> object:
    """Return the value a step leads to; the node itself if the step exists only in its encoded form."""
    try:
        return node[step] if isinstance(node, dict | list | tuple) or not isinstance(step, str) else getattr(node, step)
    except (LookupError, TypeError, AttributeError):
        return node


def _written(label: str, steps: Iterable[tuple[str, object]]) -> str:
    text = label + "".join(written for written, _ in steps)
    return text if len(text) <= 200 else f"{text[:120]}…{text[-60:]}"
