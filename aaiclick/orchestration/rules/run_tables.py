"""The tables of runs: how they are called, and which of them a text of values names."""

from __future__ import annotations

import re

from aaiclick.orchestration.rules.values import marks_of, mentions_objects

_FORM = re.compile(r"t[1-9][0-9]{0,18}_[0-9]{1,10}_[1-9][0-9]{0,9}", re.ASCII)


def run_prefix(maker: int, epoch: int) -> str:
    """What the names of a run's tables begin with; `maker` is its task, or the job that a table was given to."""
    return f"t{maker}_{epoch}"


def run_table(maker: int, epoch: int, number: int) -> str:
    """The name of one of a run's tables."""
    return f"{run_prefix(maker, epoch)}_{number}"


def is_run_table(table: object) -> bool:
    """Whether a name is of exactly that form: all other tables have lives of their own."""
    return isinstance(table, str) and _FORM.fullmatch(table) is not None


def maker_of(table: str) -> int:
    """Who made a table of a run: its task, or what it was given to."""
    return int(table[1:].partition("_")[0])


def tables_named(text: str | None) -> set[str]:
    """The tables of runs that a text of values refers to."""
    if text is None or not mentions_objects(text):
        return set()
    return {
        payload["table"]
        for kind, payload in marks_of(text)
        if kind in ("object", "view") and isinstance(payload, dict) and is_run_table(payload.get("table"))
    }
