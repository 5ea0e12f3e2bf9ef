"""`aaiclick resource`"""

import asyncio

from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.workers import register_worker
from tests.cli.conftest import Cli


def test_a_capacity_is_set_listed_and_removed(cli: Cli) -> None:
    assert cli("resource", "list").err == "no capacities\n"
    assert cli("resource", "set", "seat", "2.5").err == "There is 2.5 of seat, of which 2.5 is free.\n"
    asyncio.run(register_worker(node=NodeDescription("box", resources={"gpu": 1, "gpu_memory_mb": 100})))
    header, seat, gpu = [line.split("\t") for line in cli("resource", "list").out.splitlines()]
    assert header == ["name", "node", "slot", "size", "free", "holders"]
    assert seat[:5] == ["seat", "(all)", "0", "2.5", "2.5"]
    assert gpu[:5] == ["gpu", "box", "0", "100", "100"]
    assert [unit["name"] for unit in cli("resource", "list", "--node", "box", "--json").data["resources"]] == ["gpu"]
    assert cli("resource", "remove", "seat", "--json").data == {"removed": "seat"}
    assert cli("resource", "remove", "seat").code == 3


def test_bad_input_is_refused(cli: Cli) -> None:
    assert cli("resource", "set", "gpu", "1").code == 2
    assert "--resource gpu=AMOUNT" in cli("resource", "set", "gpu", "1").err
    assert cli("resource", "set", "seat", "many").code == 2
    started = ("worker", "start", "--executor", "inline", "--max-tasks", "1", "--node-name", "box")
    assert "name=amount" in cli(*started, "--resource", "gpu").err
    assert cli(*started, "--resource", "gpu=1.5").code == 2
