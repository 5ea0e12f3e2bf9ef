"""Nodes: the machines that run tasks. What may be said of one, and whether it is alive by its workers' sessions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import check_name, shorten

NUMBER_MAX = 100
"""Capabilities of one node; members of a list among them."""


class NodeState(StrEnum):
    """What the operator of a node wants of it."""

    OPEN = "open"
    CORDONED = "cordoned"
    """Its workers claim no tasks."""
    DRAINING = "draining"
    """Its workers claim no tasks, finish their runs, and leave."""


class NodeStatus(StrEnum):
    """Whether a node is alive, by the database's clock."""

    HEALTHY = "healthy"
    STALE = "stale"
    """Its heartbeats are overdue, and its sessions are not ended yet."""
    DEAD = "dead"
    """It has no worker with a session."""


def status_of(now: datetime, last_heartbeat: datetime | None, expires_at: datetime | None) -> NodeStatus:
    """Return the status of a node whose newest session was renewed and ends at these times; None: it has none.

    A worker sends three heartbeats per session. When half of the session has passed without one, it is stale.
    """
    if last_heartbeat is None or expires_at is None:
        return NodeStatus.DEAD
    overdue = now - last_heartbeat > (expires_at - last_heartbeat) / 2
    return NodeStatus.STALE if overdue else NodeStatus.HEALTHY


def check_capabilities(given: object) -> dict[str, Any]:
    """Return the capabilities if they are plain data: by name, texts, numbers, truths, None, or lists of these."""
    if not isinstance(given, Mapping) or len(given) > NUMBER_MAX:
        raise _refused(given, f"it must be a dict of at most {NUMBER_MAX} capabilities by their names")
    found: dict[str, Any] = {}
    for name, value in given.items():
        check_name(name, "capability")
        several = value if isinstance(value, list | tuple) else [value]
        if len(several) > NUMBER_MAX or not all(_is_plain(each) for each in several):
            raise _refused(value, f"{shorten(name)} must be a text, a number, a truth, None, or a list of these")
        found[name] = list(value) if isinstance(value, list | tuple) else value
    return found


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return bool(check_name(value, "capability"))
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def _refused(value: object, rule: str) -> InputError:
    hint = 'For example {"gpu": "nvidia", "memory_gb": 64, "labels": ["fast-disk"]}.'
    return InputError(field="capabilities", value=shorten(value), rule=rule, hint=hint)


def read_capability(typed: str) -> tuple[str, Any]:
    """Return name and value of a capability that was typed as `name=value`; a value that is JSON is read as such."""
    name, sign, text = typed.partition("=")
    if not sign or not name.strip():
        rule, hint = "it is written name=value", "For example memory_gb=64 or gpu=nvidia."
        raise InputError(field="capability", value=shorten(typed), rule=rule, hint=hint)
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        value = text.strip()
    return name.strip(), value


def with_labels(capabilities: Mapping[str, Any], labels: Iterable[str]) -> dict[str, Any]:
    """Return the capabilities with these added to their labels."""
    known = capabilities.get("labels") or []
    several = [known] if isinstance(known, str) else list(known)
    return {**capabilities, "labels": [*several, *(label for label in dict.fromkeys(labels) if label not in several)]}


def check_executors(given: object) -> list[str]:
    """Return names of executors without repeats; `rest_executor` is another name of `rest`."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        rule, hint = "it must be a list of names", 'For example ["python", "shell"].'
        raise InputError(field="executor_types", value=shorten(given), rule=rule, hint=hint)
    return list(dict.fromkeys(executor_name(each) for each in given))


def executor_name(given: object) -> str:
    """Return the name of an executor, without the ending `_executor`."""
    return check_name(given, "executor").removesuffix("_executor")
