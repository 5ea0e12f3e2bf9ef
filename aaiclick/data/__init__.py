"""Objects and Views: data that stays in ClickHouse."""

from aaiclick.data.breaking import Breakage, broken_by
from aaiclick.data.cases import when
from aaiclick.data.context import Context, current_context, data_context
from aaiclick.data.costs import Stats
from aaiclick.data.expecting import Check, Expected
from aaiclick.data.frames import Frame, Query, concat
from aaiclick.data.front import (
    create_object,
    create_object_from_file,
    create_object_from_url,
    create_object_from_value,
    delete_object,
    list_objects,
    list_versions,
    open_object,
    rollback,
)
from aaiclick.data.lineage import Lineage, lineage
from aaiclick.data.objects import Object
from aaiclick.data.schema import Field, Schema
from aaiclick.data.terms import Term, col, lit, rank, raw, row_number
from aaiclick.data.versions.catalog import Version
from aaiclick.data.versions.rewriting import Upserted
from aaiclick.data.views import View

__all__ = [
    "Breakage",
    "Check",
    "Context",
    "Expected",
    "Field",
    "Frame",
    "Lineage",
    "Object",
    "Query",
    "Schema",
    "Stats",
    "Term",
    "Upserted",
    "Version",
    "View",
    "broken_by",
    "col",
    "concat",
    "create_object",
    "create_object_from_file",
    "create_object_from_url",
    "create_object_from_value",
    "current_context",
    "data_context",
    "delete_object",
    "lineage",
    "list_objects",
    "list_versions",
    "open_object",
    "lit",
    "rank",
    "raw",
    "rollback",
    "row_number",
    "when",
]
