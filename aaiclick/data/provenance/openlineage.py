"""Operations as events of the OpenLineage standard: plain data, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5

from aaiclick.data.provenance.column_edges import ColumnEdge, edges_of
from aaiclick.data.provenance.operation_log import Operation

Json = dict[str, Any]

PRODUCER = "urn:aaiclick"
JOBS = "aaiclick"
"""The namespace of operations, tasks and jobs."""

DATABASE = "default"

_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_UNKNOWN = "which columns is not known"


def namespace_of(url: str) -> str:
    """Return the namespace of the tables at an address, without user and password."""
    if url.startswith("chdb://"):
        return url
    hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
    return f"clickhouse://{min(map(_with_port, hosts))}"


def _with_port(host: str) -> str:
    return host if ":" in host.rpartition("]")[2] else f"{host or 'localhost'}:8123"


def database_of(url: str) -> str:
    """Return the database of the tables at an address."""
    return DATABASE if url.startswith("chdb://") else unquote(urlsplit(url).path.lstrip("/")) or DATABASE


def events_of(operations: Iterable[Operation], namespace: str, database: str = DATABASE) -> list[Json]:
    """Return two events for each operation, of its start and end; an operation always gets the same run id."""
    return [event for each in operations for event in _events(each, _Tables(namespace, database))]


class _Tables:
    """The names of tables as datasets."""

    def __init__(self, namespace: str, database: str) -> None:
        self.namespace, self._database = namespace, database

    def dataset(self, table: str) -> Json:
        return {"namespace": self.namespace, "name": f"{self._database}.{table}"}


def _events(operation: Operation, tables: _Tables) -> Iterator[Json]:
    at = operation.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    output = {**tables.dataset(operation.result), "facets": _column_facet(operation, tables)}
    for state in ("START", "COMPLETE"):
        yield {
            "eventType": state,
            "eventTime": at,
            "producer": PRODUCER,
            "schemaURL": _EVENT,
            "run": {"runId": _run_id(tables.namespace, operation.result, at), "facets": _parent_facet(operation)},
            "job": {**_job(f"{operation.operation}.{operation.result}"), "facets": _sql_facet(operation)},
            "inputs": [tables.dataset(source) for source in operation.sources],
            "outputs": [output],
        }


def _job(name: str) -> Json:
    return {"namespace": JOBS, "name": name}


def _run_id(*what: object) -> str:
    return str(uuid5(NAMESPACE_URL, "/".join([PRODUCER, *map(str, what)])))


def _facet(name: str, version: str, **facts: Any) -> Json:
    return {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}", **facts}


def _sql_facet(operation: Operation) -> Json:
    if not operation.query:
        return {}
    return {"sql": _facet("SQLJobFacet", "1-1-0", query=operation.query, dialect="clickhouse")}


def _parent_facet(operation: Operation) -> Json:
    """Return the facet with the task that ran the operation, and its job; empty outside of a task."""
    if operation.task_id is None or operation.job_id is None:
        return {}
    run, job = {"runId": _run_id("task", operation.task_id)}, _job(f"task.{operation.task_id}")
    root = {"run": {"runId": _run_id("job", operation.job_id)}, "job": _job(f"job.{operation.job_id}")}
    return {"parent": _facet("ParentRunFacet", "1-2-0", run=run, job=job, root=root)}


def _column_facet(operation: Operation, tables: _Tables) -> Json:
    """Return the facet that tells which column comes from which.

    A direct edge that names no column of the result is left out: its table is among the inputs.
    """
    fields: dict[str, list[Json]] = {each.column: [] for each in operation.columns if each.column}
    whole: list[Json] = []
    for edge in edges_of(operation):
        if edge.result.column:
            fields[edge.result.column].append(_input(edge, tables))
        elif not edge.direct:
            whole.append(_input(edge, tables))
    if not fields and not whole:
        return {}
    told = {name: {"inputFields": found} for name, found in fields.items()}
    return {"columnLineage": _facet("ColumnLineageDatasetFacet", "1-2-0", fields=told, dataset=whole)}


def _input(edge: ColumnEdge, tables: _Tables) -> Json:
    how = {"type": "DIRECT" if edge.direct else "INDIRECT", "subtype": edge.how}
    if not edge.source.column:
        how["description"] = _UNKNOWN
    return {**tables.dataset(edge.source.table), "field": edge.source.column or "*", "transformations": [how]}
