"""Objects: their names, columns and rows, whole as Arrow or pandas."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING, Any

from aaiclick.client.calls import part
from aaiclick.client.networks import Cut
from aaiclick.client.verbs.asking import Asking, Id
from aaiclick.errors import MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.representations.stored_data.objects import ObjectList, RowsAnswer, SchemaAnswer

MEMORY_BYTES_MAX = 64 * 2**20
"""Larger answers are kept in a temporary file until they are read."""

END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""How a stream of Arrow ends that is complete."""


class ObjectVerbs(Asking):
    """Methods about Objects."""

    async def list_objects(self) -> ObjectList:
        """Return the names of the persistent Objects."""
        found: ObjectList = await self._get("/objects")
        return found

    async def describe_object(self, name: str) -> SchemaAnswer:
        """Return the columns of an Object; raise ObjectNotFound."""
        found: SchemaAnswer = await self._get(f"/objects/{part(name)}/schema")
        return found

    async def read_rows(self, name: str, *, limit: int | None = None) -> RowsAnswer:
        """Return the first rows of an Object as JSON."""
        found: RowsAnswer = await self._get(f"/objects/{part(name)}/rows", limit=limit)
        return found

    async def query_object(
        self,
        name: str,
        *,
        columns: Sequence[str] = (),
        where: Sequence[Mapping[str, object]] = (),
        order_by: Sequence[Mapping[str, object]] = (),
        limit: int = 100,
    ) -> RowsAnswer:
        """Return rows of an Object by plain conditions, such as `{"column": "age", "operator": ">", "value": 30}`."""
        body = {
            "columns": list(columns),
            "where": [dict(each) for each in where],
            "order_by": [dict(each) for each in order_by],
            "limit": limit,
        }
        found: RowsAnswer = await self._post(f"/objects/{part(name)}/query", body, repeatable=True)
        return found

    async def arrow(self, name: str) -> pa.Table:
        """Return a whole Object as an Arrow table."""
        return await self._table(f"/objects/{part(name)}/arrow")

    async def df(self, name: str) -> Any:
        """Return a whole Object as a DataFrame of pandas."""
        return _frame(await self.arrow(name))

    async def iter_arrow(self, name: str) -> AsyncGenerator[pa.RecordBatch, None]:
        """Yield an Object in batches of Arrow: it may be larger than the memory here."""
        pa = _pyarrow()
        async with self._spooled(f"/objects/{part(name)}/arrow") as file:
            with pa.ipc.open_stream(file) as batches:
                for batch in batches:
                    yield batch

    async def result_arrow(self, job_id: Id) -> pa.Table:
        """Return the Object that a job returned as an Arrow table; raise Conflict if it returned something else."""
        return await self._table(f"/jobs/{part(job_id)}/result/arrow")

    async def result_df(self, job_id: Id) -> Any:
        """Return the Object that a job returned as a DataFrame of pandas."""
        return _frame(await self.result_arrow(job_id))

    async def _table(self, path: str) -> pa.Table:
        pa = _pyarrow()
        async with self._spooled(path) as file:
            with pa.ipc.open_stream(file) as batches:
                return batches.read_all()

    @asynccontextmanager
    async def _spooled(self, path: str) -> AsyncGenerator[IO[bytes], None]:
        """Yield a file with the whole answer, which was read to its end: half an Object is never taken for one."""
        with tempfile.SpooledTemporaryFile(MEMORY_BYTES_MAX) as file:
            try:
                async with self._calls.stream(path) as exchange:
                    last = b""
                    async for data in exchange.parts():
                        file.write(data)
                        last = (last + data)[-len(END) :]
                if last != END:
                    raise Cut("the connection was closed within the rows")
            except OSError as error:
                raise self._calls.unreachable(error) from error
            file.seek(0)
            yield file


def _pyarrow() -> Any:
    try:
        import pyarrow as pa  # here, to keep start-up light
    except ImportError:
        raise MissingExtra(what="Reading Objects", package="pyarrow", extra="all") from None
    return pa


def _frame(table: pa.Table) -> Any:
    try:
        import pandas  # noqa: F401 (here: it is slow to import, and optional)
    except ImportError:
        raise MissingExtra(what="df()", package="pandas", extra="pandas") from None
    from aaiclick.data.typing.arrow_frames import to_frame  # here, to keep start-up light

    return to_frame(table)
