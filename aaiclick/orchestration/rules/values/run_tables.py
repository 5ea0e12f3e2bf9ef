"""Names of the tables that runs make, and of temporary tables; which of them an encoded value refers to."""

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
    """Return the prefix of a run's table names; `maker` is the id of its task, or of the job that owns the table."""
    return f"t{maker}_{epoch}"


def run_table(maker: int, epoch: int, number: int) -> str:
    """Return the name of one of a run's tables."""
    return f"{run_prefix(maker, epoch)}_{number}"


def is_run_table(table: object) -> TypeGuard[str]:
    """Return whether this is the name of a run's table; the lifetime of all other tables is managed elsewhere."""
    return isinstance(table, str) and _FORM.fullmatch(table) is not None


def maker_of(table: str) -> int:
    """Return the `maker` in the name of a run's table: its task, or the job that owns it."""
    return int(table[1:].partition("_")[0])


def tables_named(text: str | None) -> frozenset[str]:
    """Return the tables of runs that an encoded text refers to."""
    if text is None or not mentions_objects(text):
        return frozenset()
    return _run_tables_again(text) if len(text) <= REMEMBERED_CHARS else _run_tables(text)


def _run_tables(text: str) -> frozenset[str]:
    return frozenset(table for table in _named(text) if is_run_table(table))


_run_tables_again = lru_cache(maxsize=REMEMBERED_MAX)(_run_tables)
"""Cached: reporting a task and claiming its dependents ask about the same short texts."""


def temporary_tables_named(text: str | None) -> set[str]:
    """Return the tables, made by a `data_context` outside of runs, that an encoded text refers to."""
    return {table for table in _named(text) if isinstance(table, str) and _TEMPORARY.fullmatch(table)}


def _named(text: str | None) -> Iterator[object]:
    for kind, payload in () if text is None or not mentions_objects(text) else marks_of(text):
        if kind in ("object", "view", "blob") and isinstance(payload, dict):
            yield payload.get("table")


def with_tables(text: str, names: Mapping[str, str]) -> str:
    """Return the text of arguments with table names replaced as `names` maps them."""
    envelopes: dict[str, Any] = json.loads(text)
    for envelope in envelopes.values():
        _rename(envelope, names)
    return _written(envelopes)


def value_with_tables(text: str, names: Mapping[str, str]) -> str:
    """Return the text of one value with table names replaced as `names` maps them."""
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
