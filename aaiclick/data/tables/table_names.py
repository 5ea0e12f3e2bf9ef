"""The names of Objects' tables in ClickHouse: by scope, by job and by version."""

from __future__ import annotations

import re
from typing import Literal

from aaiclick.errors import InputError
from aaiclick.urls import shown

Scope = Literal["global", "job", "temporary"]

NAME_LENGTH_MAX = 150
_OF_A_JOB = re.compile(r"j\d+_", re.ASCII)
_UNNAMED = re.compile(r"c\d+_\d+|t\d+_\d+_\d+", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_VERSION = re.compile(r"@([1-9]\d*)", re.ASCII)


def persistent_table(name: str, scope: str, job_id: int | None) -> str:
    """Return the table of a persistent Object: one for everybody (scope "global"), or one of a job (scope "job")."""
    check_name(name)
    if scope == "global":
        return f"p_{name}"
    if scope != "job":
        raise InputError(field="scope", value=shown(repr(scope)), rule="it must be global, job or temporary", hint="")
    if job_id is None:
        raise InputError(field="scope", value="job", rule="it is not called inside a job", hint="Use it in a task.")
    return f"j{job_id}_{name}"


def check_name(name: object) -> None:
    """Raise InputError if this is not a valid name of an Object."""
    if type(name) is not str or not _NAME.fullmatch(name) or _length_of_file(name) > NAME_LENGTH_MAX:
        rule = f"it must be a letter, then letters, digits, _ . or -; at most {NAME_LENGTH_MAX}, . and - count thrice"
        raise InputError(field="name", value=shown(repr(name)), rule=rule, hint="")


def version_table(table: str, number: int) -> str:
    """Return the table of one version of an Object; `table` is its table without versions."""
    return f"{table}@{number}"


def without_version(table: str) -> str:
    """Return the table's name without a version."""
    return table.partition("@")[0]


def version_in(table: str) -> int | None:
    """Return the version that a table holds; None if it has no version, or is not the table of an Object."""
    _, sign, number = table.partition("@")
    found = _VERSION.fullmatch(sign + number)
    return int(found[1]) if found else None


def scope_of(table: str) -> Literal["temporary", "job", "global"]:
    """Return the scope of a table's Object by the table's name."""
    if table.startswith("p_"):
        return "global"
    return "job" if _OF_A_JOB.match(table) else "temporary"


def is_unnamed(table: str) -> bool:
    """Return whether a context or a run made this table for an Object without a name: its columns never change."""
    return _UNNAMED.fullmatch(table) is not None


def _length_of_file(name: str) -> int:
    """Return the length of the name as a file name: ClickHouse writes each point and hyphen as three characters."""
    return len(name) + 2 * (name.count(".") + name.count("-"))


def name_of(table: str) -> str | None:
    """Return the name of the global Object whose table (of any version) this is; None for other tables."""
    return without_version(table).removeprefix("p_") if table.startswith("p_") else None
