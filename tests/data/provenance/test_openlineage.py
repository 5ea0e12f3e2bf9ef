"""Lineage as events of OpenLineage, checked by its own classes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import col, create_object_from_value, data_context, lineage
from aaiclick.data.provenance.openlineage import database_of, events_of, namespace_of
from tests.support.front_door import local

__all__ = ["local"]

base = pytest.importorskip("openlineage.client.generated.base", reason="openlineage-python is not installed")
column_lineage = pytest.importorskip("openlineage.client.generated.column_lineage_dataset")
parent_run = pytest.importorskip("openlineage.client.generated.parent_run")
sql_job = pytest.importorskip("openlineage.client.generated.sql_job")
serde = pytest.importorskip("openlineage.client.serde")


def facet(cls: Any, given: dict[str, Any], **inner: Any) -> Any:
    """A facet as its class makes it; what it says of itself must be what we say."""
    facts = {name: value for name, value in given.items() if not name.startswith("_")}
    made = cls(**{**facts, **inner}, producer=given["_producer"])
    assert made._schemaURL == given["_schemaURL"]
    return made


def inputs(found: list[dict[str, Any]]) -> list[Any]:
    return [
        column_lineage.InputField(
            **{**each, "transformations": [column_lineage.Transformation(**how) for how in each["transformations"]]}
        )
        for each in found
    ]


def column_facet(given: dict[str, Any]) -> Any:
    fields = {
        name: column_lineage.Fields(inputFields=inputs(each["inputFields"])) for name, each in given["fields"].items()
    }
    return facet(column_lineage.ColumnLineageDatasetFacet, given, fields=fields, dataset=inputs(given["dataset"]))


def parent_facet(given: dict[str, Any]) -> Any:
    root = parent_run.Root(
        run=parent_run.RootRun(**given["root"]["run"]), job=parent_run.RootJob(**given["root"]["job"])
    )
    run, job = parent_run.Run(**given["run"]), parent_run.Job(**given["job"])
    return facet(parent_run.ParentRunFacet, given, run=run, job=job, root=root)


def rebuilt(event: dict[str, Any]) -> Any:
    """The event, made by the classes of openlineage-python from all that is in ours."""
    run, job, outputs = event["run"], event["job"], event["outputs"]
    made = base.RunEvent(
        eventType=base.EventType(event["eventType"]),
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=base.Run(run["runId"], {name: parent_facet(each) for name, each in run["facets"].items()}),
        job=base.Job(
            job["namespace"],
            job["name"],
            {name: facet(sql_job.SQLJobFacet, each) for name, each in job["facets"].items()},
        ),
        inputs=[base.InputDataset(**each) for each in event["inputs"]],
        outputs=[
            base.OutputDataset(
                each["namespace"],
                each["name"],
                facets={name: column_facet(it) for name, it in each["facets"].items()},
            )
            for each in outputs
        ],
    )
    assert made.schemaURL == event["schemaURL"]
    return made


def full(value: Any) -> Any:
    """Without what is empty: their classes write empty facets, ours do not."""
    if isinstance(value, dict):
        return {name: found for name, each in value.items() if (found := full(each)) not in ({}, [], None)}
    return [full(each) for each in value] if isinstance(value, list) else value


async def test_events_are_what_the_classes_of_openlineage_make_of_them(local: Path) -> None:
    async with data_context(oplog=True):
        rows = await create_object_from_value({"k": [1, 2], "v": [3, 4]}, name="rows")
        few = await rows.where(col("v") > 3).with_columns(w=col("v") * 2, one=1).materialize("few")
        history = await lineage(few)
        operations = [replace(each, job_id=5, task_id=6) for each in history.operations]
        events = events_of(operations, "clickhouse://ch:8123", "data")
    for event in events:
        assert full(serde.Serde.to_dict(rebuilt(event))) == full(json.loads(json.dumps(event)))
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 2
    last = events[-1]
    assert last["inputs"] == [{"namespace": "clickhouse://ch:8123", "name": "data.p_rows"}]
    assert last["run"]["facets"]["parent"]["root"]["job"]["name"] == "job.5"
    told = last["outputs"][0]["facets"]["columnLineage"]
    assert {name: [each["field"] for each in it["inputFields"]] for name, it in told["fields"].items()} == {
        "k": ["k"],
        "v": ["v"],
        "w": ["v"],
        "one": [],
    }
    assert told["fields"]["w"]["inputFields"][0]["transformations"] == [{"type": "DIRECT", "subtype": "TRANSFORMATION"}]
    assert told["dataset"][0]["transformations"] == [{"type": "INDIRECT", "subtype": "FILTER"}]
    assert events == events_of(operations, "clickhouse://ch:8123", "data")  # the same runs, however often
    assert history.openlineage("here")[-1]["outputs"][0]["namespace"] == "here"
    assert history.openlineage()[-1]["outputs"][0]["namespace"].startswith("chdb://")


async def test_what_is_not_known_is_said(local: Path) -> None:
    async with data_context(oplog=True):
        rows = await create_object_from_value({"v": [3, 4]}, name="rows")
        some = await rows.where("v IN (SELECT 3)").materialize("some")
        told = (await lineage(some)).openlineage()[-1]["outputs"][0]["facets"]["columnLineage"]["dataset"]
        assert told[0]["field"] == "*"
        assert "not known" in told[0]["transformations"][0]["description"]
        unknown = [replace(each, columns=()) for each in (await lineage(some)).operations]
        assert events_of(unknown, "here")[-1]["outputs"][0]["facets"] == {}


def test_a_namespace_has_no_password() -> None:
    assert namespace_of("clickhouse://user:secret@b:9000,a/data%20base") == "clickhouse://a:8123"
    assert database_of("clickhouse://user:secret@b:9000,a/data%20base") == "data base"
    assert namespace_of("clickhouse://[::1]/x") == "clickhouse://[::1]:8123"
