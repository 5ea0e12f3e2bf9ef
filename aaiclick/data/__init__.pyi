# printed by `python -m aaiclick.stubs aaiclick.data`; a test compares

from aaiclick.data.breakage import Breakage as Breakage
from aaiclick.data.breakage import broken_by as broken_by
from aaiclick.data.context import Context as Context
from aaiclick.data.context import current_context as current_context
from aaiclick.data.context import data_context as data_context
from aaiclick.data.frames import Frame as Frame
from aaiclick.data.frames import Query as Query
from aaiclick.data.frames import concat as concat
from aaiclick.data.front import create_object as create_object
from aaiclick.data.front import create_object_from_file as create_object_from_file
from aaiclick.data.front import create_object_from_url as create_object_from_url
from aaiclick.data.front import create_object_from_value as create_object_from_value
from aaiclick.data.front import delete_object as delete_object
from aaiclick.data.front import list_objects as list_objects
from aaiclick.data.front import list_versions as list_versions
from aaiclick.data.front import open_object as open_object
from aaiclick.data.front import rollback as rollback
from aaiclick.data.lineage import Lineage as Lineage
from aaiclick.data.lineage import lineage as lineage
from aaiclick.data.objects import Object as Object
from aaiclick.data.query.cases import when as when
from aaiclick.data.query.column_terms import Term as Term
from aaiclick.data.query.column_terms import col as col
from aaiclick.data.query.column_terms import lit as lit
from aaiclick.data.query.column_terms import rank as rank
from aaiclick.data.query.column_terms import raw as raw
from aaiclick.data.query.column_terms import row_number as row_number
from aaiclick.data.results.query_costs import Stats as Stats
from aaiclick.data.typing.schema import Field as Field
from aaiclick.data.typing.schema import Schema as Schema
from aaiclick.data.verbs.expectations import Check as Check
from aaiclick.data.verbs.expectations import Expected as Expected
from aaiclick.data.versions.catalog import Version as Version
from aaiclick.data.versions.rewriting import Upserted as Upserted
from aaiclick.data.views import View as View

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
    "lit",
    "open_object",
    "rank",
    "raw",
    "rollback",
    "row_number",
    "when",
]
