"""The tables of runs: how they are called, and which of them a text of values names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeGuard

from aaiclick.orchestration.rules.values.reference_marks import (
    REMEMBERED_CHARS,
    REMEMBERED_MAX,
    marks_of,
    mentions_objects,
)

_FORM = re.compile(r"t[1-9][0-9]{0,18}_[0-9]{1,10}_[1-9][0-9]{0,9}", re.ASCII)


_TEMPORARY = re.compile(r"c[1-9][0-9]{0,18}_[1-9][0-9]{0,9}", re.ASCII)


def run_prefix(maker: int, epoch: int) -> str:
    """What the names of a run's tables begin with; `maker` is its task, or the job that a table was given to."""
    return f"t{maker}_{epoch}"


def run_table(maker: int, epoch: int, number: int) -> str:
    """The name of one of a run's tables."""
    return f"{run_prefix(maker, epoch)}_{number}"


def is_run_table(table: object) -> TypeGuard[str]:
    """Whether a name is of exactly that form: all other tables have lives of their own."""
    return isinstance(table, str) and _FORM.fullmatch(table) is not None


def maker_of(table: str) -> int:
    """Who made a table of a run: its task, or what it was given to."""
    return int(table[1:].partition("_")[0])


def tables_named(text: str | None) -> frozenset[str]:
    """The tables of runs that a text of values refers to."""
    if text is None or not mentions_objects(text):
        return frozenset()
    return _run_tables_again(text) if len(text) <= REMEMBERED_CHARS else _run_tables(text)


def _run_tables(text: str) -> frozenset[str]:
    return frozenset(table for table in _named(text) if is_run_table(table))


_run_tables_again = lru_cache(maxsize=REMEMBERED_MAX)(_run_tables)
"""Whoever reports a task and whoever claims those that wait for it asks about the same short texts."""


def temporary_tables_named(text: str | None) -> set[str]:
    """The tables of a `data_context` outside of runs that a text of values refers to."""
    return {table for table in _named(text) if isinstance(table, str) and _TEMPORARY.fullmatch(table)}


def _named(text: str | None) -> Iterator[object]:
    for kind, payload in () if text is None or not mentions_objects(text) else marks_of(text):
        if kind in ("object", "view", "blob") and isinstance(payload, dict):
            yield payload.get("table")


def with_tables(text: str, names: Mapping[str, str]) -> str:
    """The text of arguments, with references to other tables instead of these."""
    envelopes: dict[str, Any] = json.loads(text)
    for envelope in envelopes.values():
        _rename(envelope, names)
    return _written(envelopes)


def value_with_tables(text: str, names: Mapping[str, str]) -> str:
    """The text of one value, with references to other tables instead of these."""
    envelope: dict[str, Any] = json.loads(text)
    _rename(envelope, names)
    return _written(envelope)


def _rename(envelope: dict[str, Any], names: Mapping[str, str]) -> None:
    if envelope["object_type"] != "pyobj":
        envelope["table"] = names.get(envelope["table"], envelope["table"])
    for _, kind, *payload in envelope.get("marks", ()):
        if kind in ("object", "view"):
            payload[0]["table"] = names.get(payload[0]["table"], payload[0]["table"])


def _written(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
