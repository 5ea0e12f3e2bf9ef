"""`aaiclick node`"""

import asyncio

from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.workers import deregister_worker, register_worker
from tests.cli.conftest import Cli


def begin(name: str = "box") -> int:
    node = NodeDescription(name, capabilities={"labels": ["fast", "red"]})
    return asyncio.run(register_worker(node=node)).id


def test_a_node_is_listed_shown_closed_emptied_and_removed(cli: Cli) -> None:
    worker = begin()
    header, row = [line.split("\t") for line in cli("node", "list").out.splitlines()]
    assert header[:4] == ["name", "status", "state", "pool"]
    assert row[:8] == ["box", "healthy", "open", "", "1", "1", "0", "fast, red"]
    assert "capabilities" in cli("node", "get", "box").out
    assert cli("node", "cordon", "box").err == "Node box is closed for new tasks.\n"
    assert cli("node", "uncordon", "box").err == "Node box is open.\n"
    assert cli("node", "drain", "box").err.startswith("Node box drains")
    refused = cli("node", "remove", "box")
    assert (refused.code, "alive" in refused.err) == (5, True)
    asyncio.run(deregister_worker(worker))
    assert cli("node", "remove", "box", "--json").data == {"name": "box", "sessions": 0, "freed": 0}
    assert cli("node", "get", "box").code == 3
    assert cli("node", "list").err == "no nodes\n"


def test_a_node_that_is_gone_is_removed_by_force(cli: Cli) -> None:
    begin()
    assert (
        cli("node", "remove", "box", "--force").err
        == "Node box is removed: 1 session ended, no runs given to others.\n"
    )


def test_a_worker_says_what_its_machine_has(cli: Cli) -> None:
    started = ("worker", "start", "--executor", "inline", "--max-tasks", "1", "--node-name", "box")
    assert cli(*started, "--capability", "gpu").code == 2
    assert "name=value" in cli(*started, "--capability", "gpu").err
