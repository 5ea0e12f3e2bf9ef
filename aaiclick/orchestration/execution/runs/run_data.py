"""The Objects of a run: opens its arguments, creates its tables, and decides which of them outlive it."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from aaiclick.backend import get_ch_url
from aaiclick.config import settings
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.context import Context
from aaiclick.data.frames import Frame, Query
from aaiclick.data.provenance.operation_log import Oplog
from aaiclick.data.tables.blobs import read_blob, write_blob
from aaiclick.data.tables.lifetimes import Lifetime
from aaiclick.data.views import Windowed
from aaiclick.orchestration.execution.runs.current import current_services
from aaiclick.orchestration.execution.runs.failures import storable
from aaiclick.orchestration.models import Claim, Done, Report
from aaiclick.orchestration.models.children import NewTask
from aaiclick.orchestration.results.task_results import TaskResult
from aaiclick.orchestration.rules.failed import holds_failed
from aaiclick.orchestration.rules.values.large_values import arguments_with, is_too_large, large_arguments, value_with
from aaiclick.orchestration.rules.values.reference_marks import marks_of, mentions_objects
from aaiclick.orchestration.rules.values.run_tables import run_prefix, run_table

Opened = Mapping[str, object]
"""Objects and Views, by the text of their references."""

TABLES = ("object", "view", "blob")
"""The kinds of references to tables."""

NAMES_FIRST, NAMES_MIN, NAMES_MAX = 1, 3, 256
"""How many table names are registered at a time: initially (most runs create one table), then at least and at most."""

UNMET_MAX = 2_000
"""The maximum number of characters stored of an expectation that was not met."""

_wanting: dict[Any, frozenset[str]] = {}
REMEMBERED_MAX = 10_000


class RunData:
    """The data of one run in ClickHouse. Nothing is opened before it is needed."""

    __slots__ = ("_claim", "_context", "_lifetime", "_opening", "_unmet", "_url", "services")

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self.services = current_services()
        """What the run must ask before it creates tables; None if tables are not registered."""
        self._context: Context | None = None
        self._opening: asyncio.Future[Context] | None = None
        self._lifetime: Lifetime | None = None
        self._url = ""
        self._unmet: tuple[tuple[str, str], ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the context of the run is open."""
        return self._context is not None

    async def context(self) -> Context:
        """Return the context of the run, opened by the first call. Names of its tables contain task id and epoch."""
        if self._context is None:
            if self._opening is None or self._opening.done():
                self._opening = asyncio.ensure_future(self._open())
            self._context = await self._opening
        return self._context

    async def _open(self) -> Context:
        """Open the context, after registering the first table names. Tables of the arguments are held by the claim."""
        claim = self._claim
        installation = "" if self.services is None else await self._hold(0)
        self._url = get_ch_url()
        client = await open_client(self._url)
        grant = None if self.services is None else self._take_names
        self._lifetime = Lifetime(
            client, prefix=run_prefix(claim.task_id, claim.epoch), grant=grant, granted=NAMES_FIRST
        )
        noted = Oplog(client, claim.job_id, claim.task_id) if settings().oplog else None
        return Context(
            client,
            self._lifetime,
            job_id=claim.job_id,
            reads_files=self._url.startswith("chdb://"),
            oplog=noted,
            installation=installation,
        )

    async def _hold(self, granted: int) -> str:
        """Register the next block of table names. The first name may have been registered with the claim already."""
        assert self.services is not None
        claim, numbers = self._claim, range(granted + 1, granted + _block(granted) + 1)
        if claim.registered and list(numbers) == [1]:
            return claim.installation
        return await self.services.hold(claim, [run_table(claim.task_id, claim.epoch, number) for number in numbers])

    async def _take_names(self, granted: int) -> int:
        """Register more table names before they are used. Return how many there are now."""
        await self._hold(granted)
        return granted + _block(granted)

    async def open_arguments(self) -> Opened:
        """Return the Objects and Views that the arguments refer to, and the texts of values stored in blob tables.

        They are keyed by `key_of`.
        """
        texts = (self._claim.kwargs_json, *self._claim.inputs.values())
        context = await self.context()
        referred = {key_of(kind, payload): (kind, payload) for text in texts for kind, payload in _referred(text)}
        wanted = {key: {"object_type": kind, **it} for key, (kind, it) in referred.items() if kind != "blob"}
        found = await context.open_references(list(wanted.values()), held=True)
        opened: dict[str, object] = dict(zip(wanted, found, strict=True))
        for key, (kind, payload) in referred.items():
            if kind == "blob":
                opened[key] = await read_blob(context.client, payload["table"])
        return opened

    async def convert(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Convert arguments of parameters annotated as Objects to Objects, whatever the producing task returned.

        A value that contains a failure is left unchanged, so that the body sees it. `kwargs` is changed in place.
        """
        for name in wanting_objects(function) & kwargs.keys():
            value = kwargs[name]
            if not (value is None or isinstance(value, Frame) or holds_failed(value)):
                kwargs[name] = await (await self.context()).create_object_from_value(kwargs[name])
        return kwargs

    async def lower(self, value: Any, around: tuple[int, ...] = ()) -> Any:
        """Replace the queries and data frames in a returned value by Objects, and keep their tables after the run.

        A value that contains itself is returned unchanged: encoding refuses it later. `around` holds the ids of the
        containers that surround the value.
        """
        if id(value) in around or not holds_data(value):
            return value
        if isinstance(value, Query) or _is_frame(value):
            value = await (await self.context()).create_object_from_value(value)
        inside = (*around, id(value))
        if isinstance(value, Windowed):
            value.reference()
            if self._lifetime is not None:
                self._lifetime.keep(value.table)
        elif isinstance(value, TaskResult):
            value.data = await self.lower(value.data, inside)
        elif isinstance(value, list | tuple):
            return type(value)([await self.lower(each, inside) for each in value])
        elif isinstance(value, dict):
            return {name: await self.lower(each, inside) for name, each in value.items()}
        return value

    def hand_on(self, report: Report) -> Report:
        """Keep the tables that the result and the arguments of new tasks refer to. Return the report unchanged."""
        if self._lifetime is not None and isinstance(report, Done):
            children = () if report.children is None else report.children.tasks
            for text in (report.result_json, *(new.kwargs_json for new in children)):
                for _, payload in _referred(text):
                    self._lifetime.keep(payload["table"])
        return report

    async def lighten(self, report: Report) -> Report:
        """Return the report with values too large for the database replaced by references to blob tables."""
        if not isinstance(report, Done) or not is_heavy(report):
            return report
        limit, text, children = settings().value_bytes_max, report.result_json, report.children
        if is_too_large(text, limit):
            text = value_with(text, await self._blob(text))
        if children is not None:
            tasks = [await self._lightened(new, limit) for new in children.tasks]
            children = replace(children, tasks=tasks)
        return replace(report, result_json=text, children=children)

    async def _lightened(self, new: NewTask, limit: int) -> NewTask:
        if not is_too_large(new.kwargs_json, limit):
            return new
        large = large_arguments(new.kwargs_json, limit)
        tables = {name: await self._blob(text) for name, text in large.items()}
        return new._replace(kwargs_json=arguments_with(new.kwargs_json, tables))

    async def _blob(self, text: str) -> str:
        """Store a text in a new table, which is kept after the run. Return the table's name."""
        context = await self.context()
        assert self._lifetime is not None
        keeper = await self._lifetime.new_table()
        await write_blob(context.client, keeper.table, text, **context.facts)
        self._lifetime.keep(keeper.table)
        return keeper.table

    def sign(self, report: Report) -> Report:
        """Return the report with the tables that the run leaves, and the expectations that were not met.

        Call it after `end`.
        """
        if self._unmet:
            report = replace(report, unmet=tuple((move, storable(line, UNMET_MAX)) for move, line in self._unmet))
        if self.services is None or (self._opening is None and not self._claim.registered):
            return report
        return replace(report, made=() if self._lifetime is None else self._lifetime.left)

    async def end(self) -> None:
        """Close the context, and drop the tables that the run created and did not keep."""
        context, self._context = self._context, None
        if context is not None:
            self._unmet = tuple(context.expected)
            await context.end()
            await close_client(self._url)


def _block(granted: int) -> int:
    """Return how many names to register after `granted` ones: as many again, within the bounds."""
    return min(max(granted, NAMES_MIN), NAMES_MAX) if granted else NAMES_FIRST


def refers_to_objects(claim: Claim) -> bool:
    """Return whether the arguments refer to tables. The mere words `object` or `view` in a text do not count."""
    if _refers(claim.kwargs_json):
        return True
    return any(map(_refers, claim.inputs.values())) if claim.inputs else False


def _refers(text: str | None) -> bool:
    return mentions_objects(text) and bool(_referred(text))


def _referred(text: str | None) -> list[tuple[str, dict[str, Any]]]:
    """Return the references to tables in encoded values, as (kind, payload)."""
    marks = marks_of(text) if text is not None and mentions_objects(text) else ()
    return [(kind, payload) for kind, payload in marks if kind in TABLES and isinstance(payload, dict)]


def key_of(kind: str, payload: Mapping[str, Any]) -> str:
    """Return a canonical text of a reference, used as a dictionary key."""
    return json.dumps([kind, payload["table"] if kind == "blob" else payload], sort_keys=True)


def wanting_objects(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of parameters that are annotated as Objects or Views."""
    found = _wanting.get(function)
    if found is None:
        if len(_wanting) >= REMEMBERED_MAX:
            _wanting.clear()
        kinds = inspect.get_annotations(function)
        found = frozenset(name for name, kind in kinds.items() if name != "return" and _means_object(kind))
        _wanting[function] = found
    return found


def _means_object(annotation: Any) -> bool:
    """Return whether an annotation is Object or View, or a union that contains one. A list of Objects is not."""
    if isinstance(annotation, str):
        try:
            return _names_object(ast.parse(annotation.strip(), mode="eval").body)
        except SyntaxError:
            return False
    origin = get_origin(annotation)
    if origin in (Union, UnionType, Annotated):
        return any(map(_means_object, get_args(annotation)))
    return isinstance(annotation, type) and origin is None and issubclass(annotation, Windowed)


def _names_object(said: ast.expr) -> bool:
    """Do the same for an annotation that is a string, by name only: it may be importable by type checkers only."""
    if isinstance(said, ast.Constant):
        return isinstance(said.value, str) and _means_object(said.value)
    if isinstance(said, ast.BinOp):
        return _names_object(said.left) or _names_object(said.right)
    if isinstance(said, ast.Subscript) and _last_name(said.value) in ("Optional", "Union", "Annotated"):
        return any(map(_names_object, said.slice.elts if isinstance(said.slice, ast.Tuple) else [said.slice]))
    return _last_name(said) in ("Object", "View")


def _last_name(said: ast.expr) -> str:
    return said.attr if isinstance(said, ast.Attribute) else said.id if isinstance(said, ast.Name) else ""


def _is_frame(value: object) -> bool:
    """Return whether the value is of Arrow, pandas or polars, without importing them."""
    return (type(value).__module__ or "").partition(".")[0] in ("pyarrow", "pandas", "polars")


def holds_data(value: object) -> bool:
    """Return whether a value contains, at any depth, Objects, Views, queries or data frames."""
    left: list[Any] = [value]
    seen: set[int] = set()
    while left:
        each = left.pop()
        kind = type(each)
        if kind in PLAIN:
            continue
        if kind in (list, tuple, dict):
            if id(each) not in seen:
                seen.add(id(each))
                left += each.values() if kind is dict else each
        elif isinstance(each, TaskResult):
            left.append(each.data)
        elif isinstance(each, Frame) or _is_frame(each):
            return True
    return False


PLAIN = {type(None), bool, int, float, str, bytes}


def is_heavy(report: Report) -> bool:
    """Return whether a report contains values that are too large for the database."""
    if not isinstance(report, Done):
        return False
    limit, children = settings().value_bytes_max, report.children
    if children is not None and any(is_too_large(each.kwargs_json, limit) for each in children.tasks):
        return True
    return is_too_large(report.result_json, limit)
