"""What the tools are asked with."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from aaiclick.server.mcp import arguments
from aaiclick.server.mcp.bounds import PAGE_DEFAULT, PAGE_MAX
from aaiclick.server.mcp.catalogue import tools
from aaiclick.server.mcp.tools import Tool

ALL = tools(write=True).values()


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_what_is_not_known_is_refused_and_nothing_is_taken_for_what_it_is_not(tool: Tool) -> None:
    assert tool.asked.model_config["extra"] == "forbid"
    assert tool.asked.model_config["strict"] is True


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_an_agent_is_told_what_each_argument_means_where_its_name_does_not(tool: Tool) -> None:
    plain = {"columns", "order_by", "enabled_only", "schedule", "name", "priority", "timeout_s", "preservation_mode"}
    plain |= {
        "enabled",
        "timezone",
        "missed_runs",
        "missed_max",
        "overlap",
        "time_kwarg",
        "fail_fast",
        "default_kwargs",
    }
    for name, facts in tool.input_schema.get("properties", {}).items():
        assert facts.get("description") or name in plain


def test_pages_are_small_unless_asked_for() -> None:
    assert arguments.FindJobs().limit == PAGE_DEFAULT
    with pytest.raises(ValidationError):
        arguments.FindJobs(limit=PAGE_MAX + 1)


@pytest.mark.parametrize("kind", [arguments.OneJob, arguments.OneTask, arguments.OneWorker])
@pytest.mark.parametrize("given", ["", "x", "-1", "1e3", "0x10", "1.0", " 1", "1\n", "\u0661", "1" * 20, 1, 1.5, None])
def test_an_id_is_digits_in_a_string(kind: type[BaseModel], given: Any) -> None:
    (name,) = kind.model_fields
    with pytest.raises(ValidationError):
        kind.model_validate({name: given})
    kind.model_validate({name: "380467616543174656"})
