"""Objects and Views: data that stays in ClickHouse.

Public names are imported on first use, so that importing one module of this package does not load the others.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_WHERE = {
    "breakage": ("Breakage", "broken_by"),
    "query.cases": ("when",),
    "context": ("Context", "current_context", "data_context"),
    "results.query_costs": ("Stats",),
    "verbs.expectations": ("Check", "Expected"),
    "frames": ("Frame", "Query", "concat"),
    "front": (
        "create_object",
        "create_object_from_file",
        "create_object_from_url",
        "create_object_from_value",
        "delete_object",
        "list_objects",
        "list_versions",
        "open_object",
        "rollback",
    ),
    "lineage": ("Lineage", "lineage"),
    "objects": ("Object",),
    "typing.schema": ("Field", "Schema"),
    "query.column_terms": ("Term", "col", "lit", "rank", "raw", "row_number"),
    "versions.catalog": ("Version",),
    "versions.rewriting": ("Upserted",),
    "views": ("View",),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__


class _Room(ModuleType):
    """The type of this package: its `lineage` is the function, also after the submodule was imported."""

    @property
    def lineage(self) -> Any:
        return importlib.import_module(f"{__name__}.lineage").lineage

    @lineage.setter
    def lineage(self, module: ModuleType) -> None:
        """Ignore the submodule, which Python sets when it is imported."""


sys.modules[__name__].__class__ = _Room
