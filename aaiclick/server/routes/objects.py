"""Objects over HTTP: their names, columns and rows; read only, within limits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BeforeValidator

from aaiclick.data.browsing import Condition, Order, browse_object, describe_object
from aaiclick.data.context import data_context
from aaiclick.representations.stored_data.objects import (
    ObjectList,
    RowsAnswer,
    SchemaAnswer,
    rows_answer,
    schema_answer,
)
from aaiclick.server import request_models
from aaiclick.server.auth.actors import Viewer
from aaiclick.server.openapi import UNCHANGED, told
from aaiclick.server.responses import answer
from aaiclick.server.streaming.rows import ARROW, object_query, rows_stream
from aaiclick.server.transport.encoded_slashes import with_slashes

router = APIRouter(prefix="/objects", tags=["objects"])

Name = Annotated[
    str, BeforeValidator(with_slashes), Path(min_length=1, max_length=200, description="The Object's name.")
]


@router.get("", response_model=ObjectList, responses=told() | UNCHANGED)
async def list_(request: Request, _: Viewer) -> Response:
    """List the names of the persistent Objects."""
    async with data_context(oplog=False) as context:
        return answer(request, ObjectList(objects=await context.list_objects()))


@router.get("/{name}/schema", response_model=SchemaAnswer, responses=told(404) | UNCHANGED)
async def schema(request: Request, name: Name, _: Viewer) -> Response:
    """Show the columns of an Object."""
    return answer(request, schema_answer(name, await describe_object(name)))


@router.get("/{name}/rows", response_model=RowsAnswer, responses=told(404) | UNCHANGED)
async def rows(
    request: Request, name: Name, _: Viewer, asked: Annotated[request_models.RowsQuery, Query()]
) -> Response:
    """Show the first rows of an Object."""
    return answer(request, rows_answer(await browse_object(name, limit=asked.limit)))


@router.get("/{name}/arrow", response_class=Response, responses=told(404) | ARROW)
async def arrow(request: Request, name: Name, _: Viewer) -> Response:
    """Stream all rows of an Object, in the format of Arrow."""
    return rows_stream(request, await object_query(name))


@router.post("/{name}/query", response_model=RowsAnswer, responses=told(400, 404))
async def query(request: Request, name: Name, _: Viewer, body: request_models.QueryObject) -> Response:
    """Show rows of an Object by plain conditions, without SQL: nothing else is read, and nothing is written."""
    found = await browse_object(
        name,
        columns=body.columns,
        where=[Condition(each.column, each.operator, each.value) for each in body.where],
        order_by=[Order(each.column, each.descending) for each in body.order_by],
        limit=body.limit,
    )
    return answer(request, rows_answer(found))
