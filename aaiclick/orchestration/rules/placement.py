"""Placement: what users say of where a task may run, in one canonical form, and whether a node meets it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.affinity import INPUTS, OTHER, SAME, failed_on, wished_node
from aaiclick.orchestration.rules.lanes import canonical
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, executor_of
from aaiclick.orchestration.rules.nodes import check_capabilities, check_executors
from aaiclick.orchestration.rules.validation import check_name, check_seconds, shorten

PATIENCE_S = 5.0
"""How long a task waits for a node that it prefers, by default."""

NAMES_MAX = 200
"""Nodes, executors, labels or comparisons in one list."""

PARALLEL_MAX = 10_000
SIGNS = ("==", "!=", "<=", ">=", "<", ">")
HINT = 'For example placement="memory_gb >= 32", or PlacementConstraints(requires_capabilities={"gpu": "nvidia"}).'
_COMPARISON = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>.+?)\s*")

Condition: TypeAlias = tuple[str, str, Any]
"""A comparison: capability, sign, value."""


@dataclass(frozen=True, slots=True)
class PlacementConstraints:
    """Where a task may run. All that is said must hold, except `prefers` and `spread`, which are wishes."""

    requires_executors: Sequence[str] = ()
    """The node needs one of these."""
    requires_capabilities: Mapping[str, Any] = field(default_factory=dict)
    """By name: a value that the capability must equal, or contain if it is a list; a list of which it must contain all;
    or comparisons, as in `{"memory_gb": {">=": 32}}`."""
    max_parallel_per_node: int | None = 1
    """How many tasks of this function may run on a node at a time; None is no limit."""
    allowed_nodes: Sequence[str] | None = None
    """Only nodes of these names."""
    forbidden_nodes: Sequence[str] | None = None
    """No nodes of these names."""
    where: str | Sequence[str] = ()
    """Comparisons as texts, such as `memory_gb >= 32`."""
    labels_all: Sequence[str] = ()
    """The node needs all of these labels."""
    labels_any: Sequence[str] = ()
    """The node needs one of these labels."""
    pool: str | None = None
    """Only nodes of this pool."""
    prefers: str | Sequence[str] = ()
    """Comparisons that are wishes: other nodes take the task only once it has waited for `patience_s`."""
    spread: bool = False
    """A wish: nodes that run the function already take another only once it has waited for `patience_s`."""
    retry_node: Literal["same", "other"] | None = None
    """Where another attempt may run. "same": a wish for the node of the attempt before. "other": not on the node where
    the attempt before failed, as long as another node that is open and alive meets all else; after that, as a wish."""
    near: Literal["inputs"] | None = None
    """"inputs": a wish for the node that ran most of the tasks that the task depends on."""
    patience_s: float = PATIENCE_S

    def to_needs(self) -> dict[str, Any]:
        """Return the same as plain data in one canonical form, without what is the default."""
        conditions = [*_required(self.requires_capabilities), *map(_read, _texts(self.where, "where"))]
        conditions += [("labels", "==", label) for label in _names(self.labels_all, "labels_all")]
        found: dict[str, Any] = {
            "executors": sorted(check_executors(self.requires_executors)),
            "where": _sorted(conditions),
            "labels_any": sorted(_names(self.labels_any, "labels_any")),
            "allowed": None if self.allowed_nodes is None else sorted(_names(self.allowed_nodes, "allowed_nodes")),
            "forbidden": sorted(_names(self.forbidden_nodes or (), "forbidden_nodes")),
            "pool": None if self.pool is None else check_name(self.pool, "pool"),
            "max_parallel": _parallel(self.max_parallel_per_node),
            "prefers": _sorted(map(_read, _texts(self.prefers, "prefers"))),
            "spread": _flag(self.spread),
            "retry_node": _one_of(self.retry_node, "retry_node", SAME, OTHER),
            "near": _one_of(self.near, "near", INPUTS),
        }
        if any(found[wish] for wish in ("prefers", "spread", "retry_node", "near")):
            found["patience_s"] = check_seconds(self.patience_s, "patience_s")
        return {name: value for name, value in found.items() if value not in ([], None, False)}


Placement: TypeAlias = PlacementConstraints | Mapping[str, Any] | str
"""What users say: constraints, the same as a dict, or one comparison as a text."""


def needs_of(given: Placement | None) -> str:
    """Return the canonical text of a placement, checked; the empty text if it asks for nothing."""
    if given is None:
        return ""
    if isinstance(given, str):
        given = PlacementConstraints(where=given, max_parallel_per_node=None)
    elif isinstance(given, Mapping):
        unknown = sorted(map(str, given.keys() - _FIELDS))
        if unknown:
            rule, hint = f"placement has no field {shorten(unknown[0])}", f"It has: {', '.join(sorted(_FIELDS))}."
            raise InputError(field="placement", value=shorten(dict(given)), rule=rule, hint=hint)
        given = PlacementConstraints(**given)
    if not isinstance(given, PlacementConstraints):
        raise _refused(given, "it must be PlacementConstraints, a dict of their fields, or a comparison")
    needs = given.to_needs()
    return canonical(needs) if needs else ""


_FIELDS = frozenset(each.name for each in fields(PlacementConstraints))


def merge(outer: str, inner: str) -> str:
    """Return the needs of what lies in something that has needs of its own: a task in a group, a group in a job.

    Conditions and forbidden nodes add up, allowed nodes must be allowed by both; of all else, the inner one counts.
    """
    if not outer or not inner or outer == inner:
        return outer or inner
    first, second = json.loads(outer), json.loads(inner)
    both = {**first, **second}
    for name in ("where", "prefers"):
        both[name] = _sorted(map(tuple, [*first.get(name, ()), *second.get(name, ())]))
    both["forbidden"] = sorted({*first.get("forbidden", ()), *second.get("forbidden", ())})
    if "allowed" in first and "allowed" in second:
        both["allowed"] = sorted({*first["allowed"]} & {*second["allowed"]})
    return canonical({name: value for name, value in both.items() if value != [] or name == "allowed"})


def lane_needs(needs: str, entrypoint: str) -> dict[str, Any]:
    """Return the needs of a task's lane. Where runs of a function are counted, each function has a lane of its own.

    An executor that the entrypoint names is needed, whatever executors were asked for.
    """
    found: dict[str, Any] = json.loads(needs) if needs else {}
    if (executor := executor_of(entrypoint)) != PYTHON:
        found["executors"] = [executor]
    if "max_parallel" in found or "spread" in found:
        found["entrypoint"] = entrypoint
    return found


# ---------------------------------------------------------------- nodes


class Place(Protocol):
    """What is asked of a node: NodeInfo and NodeDescription have it."""

    @property
    def name(self) -> str: ...
    @property
    def pool(self) -> str | None: ...
    @property
    def capabilities(self) -> Mapping[str, Any]: ...
    @property
    def executor_types(self) -> Sequence[str]: ...


def satisfies_placement(constraints: Placement | None, node: Place) -> bool:
    """Return whether the node meets the constraints; how many tasks it runs already is not looked at."""
    return not misses(json.loads(needs_of(constraints) or "{}"), node)


def misses(needs: Mapping[str, Any], node: Place) -> list[str]:
    """Return what a node lacks of these needs, for people; an empty list if it may run what has them."""
    found = []
    executors = needs.get("executors", ())
    if executors and not {*executors} & {*node.executor_types}:
        found.append(f"it has no executor {' or '.join(executors)}")
    for name, sign, value in needs.get("where", ()):
        if not holds(node.capabilities, (name, sign, value)):
            found.append(f"{name} is {_shown(node.capabilities, name)}, needed is {name} {sign} {_text(value)}")
    labels = needs.get("labels_any", ())
    if labels and not any(holds(node.capabilities, ("labels", "==", label)) for label in labels):
        found.append(f"it has none of the labels {', '.join(labels)}")
    if "pool" in needs and node.pool != needs["pool"]:
        found.append(f"it is in pool {node.pool or 'none'}, needed is {needs['pool']}")
    if "allowed" in needs and node.name not in needs["allowed"]:
        found.append("it is not among the allowed nodes")
    if node.name in needs.get("forbidden", ()):
        found.append("it is forbidden")
    return found


def prefers(needs: Mapping[str, Any], node: Place) -> bool:
    """Return whether the node is one that these needs prefer."""
    if node.name != wished_node(needs, node.name):
        return False
    return all(holds(node.capabilities, (name, sign, value)) for name, sign, value in needs.get("prefers", ()))


def leaves_to_others(needs: Mapping[str, Any], node: Place, there: Iterable[Place]) -> bool:
    """Return whether a node leaves a task to others because its last attempt failed there.

    `there` are the nodes that are open and alive. If no other one of them meets the needs, it is left to none.
    """
    if not failed_on(needs, node.name):
        return False
    return any(other.name != node.name and not misses(needs, other) for other in there)


def room_on_node(needs: Mapping[str, Any], running: int | None, wanted: int, *, patient: bool) -> int:
    """Return how many of the wanted tasks a node may take that runs so many of the same function.

    `running` None: the worker has no node. `patient`: the tasks still wait for a node that runs none.
    """
    if running is None:
        return wanted
    most = needs.get("max_parallel")
    room = wanted if most is None else max(0, min(wanted, most - running))
    if needs.get("spread"):
        room = 0 if running and patient else min(room, 1)
    return room


def holds(capabilities: Mapping[str, Any], condition: Condition) -> bool:
    """Return whether a comparison holds. One with a capability that the node lacks does not, except `!=`."""
    name, sign, value = condition
    has = capabilities.get(name)
    several = has if isinstance(has, list | tuple) else [has]
    if sign in ("==", "!="):
        return (name in capabilities and any(_same(each, value) for each in several)) is (sign == "==")
    return any(_compared(each, sign, value) for each in several)


def _same(has: Any, value: Any) -> bool:
    """Return whether two values are equal; 1 and True are not."""
    return isinstance(has, bool) is isinstance(value, bool) and bool(has == value)


def _compared(has: Any, sign: str, value: Any) -> bool:
    if isinstance(has, bool) or isinstance(value, bool) or isinstance(has, str) is not isinstance(value, str):
        return False
    if has is None or value is None:
        return False
    if isinstance(has, str):
        has, value = _numbers(has), _numbers(value)
    found = {"<": has < value, "<=": has <= value, ">": has > value, ">=": has >= value}[sign]
    return bool(found)


@lru_cache(maxsize=10_000)
def _numbers(text: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a text so that numbers in it compare as numbers: version 3.9 is before 3.11."""
    parts = re.split(r"(\d+)", text)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part)


def _shown(capabilities: Mapping[str, Any], name: str) -> str:
    return _text(capabilities[name]) if name in capabilities else "unknown"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "empty"
    return "none" if value is None else str(value)


# ---------------------------------------------------------------- checks


def _required(given: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions of `requires_capabilities`."""
    if not isinstance(given, Mapping):
        raise _refused(given, "requires_capabilities must be a dict")
    found: list[Condition] = []
    for name, value in given.items():
        compared = list(value.items()) if isinstance(value, Mapping) else [("==", value)]
        for sign, each in compared:
            if sign not in SIGNS:
                raise _refused(sign, f"a comparison has one of the signs {', '.join(SIGNS)}")
            plain = check_capabilities({name: each})[name]
            found += [(name, sign, one) for one in (plain if isinstance(plain, list) else [plain])]
    return found


def _read(text: str) -> Condition:
    """Return the condition of a comparison as a text; a value that is no number, true, false or null is a text."""
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise _refused(text, f"a comparison is a capability, one of {', '.join(SIGNS)}, and a value")
    try:
        value = json.loads(match["value"], parse_constant=str)
    except ValueError:
        value = match["value"].strip("'")
    if isinstance(value, list | dict):
        raise _refused(text, "a comparison has one value")
    plain = check_capabilities({match["name"]: value})
    return match["name"], match["sign"], plain[match["name"]]


def _sorted(conditions: Any) -> list[list[Any]]:
    unique = {canonical({"": each}): list(each) for each in conditions}
    return [unique[text] for text in sorted(unique)]


def _texts(given: str | Sequence[str], name: str) -> list[str]:
    return _names([given] if isinstance(given, str) else given, name)


def _names(given: Any, name: str) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Sequence | set | frozenset) or len(given) > NAMES_MAX:
        raise _refused(given, f"{name} must be a list of at most {NAMES_MAX} texts")
    return list(dict.fromkeys(check_name(each, name) for each in given))


def _parallel(most: Any) -> int | None:
    if most is not None and (type(most) is not int or not 1 <= most <= PARALLEL_MAX):
        raise _refused(most, f"max_parallel_per_node must be a whole number from 1 to {PARALLEL_MAX}, or None")
    return None if most is None else int(most)


def _one_of(value: Any, name: str, *choices: str) -> str | None:
    if value is not None and (type(value) is not str or value not in choices):
        raise _refused(value, f"{name} must be {' or '.join(map(repr, choices))}, or None")
    return None if value is None else str(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _refused(value, "spread must be True or False")
    return bool(value)


def _refused(value: object, rule: str) -> InputError:
    return InputError(field="placement", value=shorten(value), rule=rule, hint=HINT)
