"""What a machine has: as its files say, and no GPU where no driver answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import ConfigError, InputError
from aaiclick.orchestration.launchers import node_discovery
from aaiclick.orchestration.launchers.node_discovery import describe_node, find_capabilities


def test_this_machine_has_processors_and_memory_and_its_gpus_are_those_of_a_driver_that_answers() -> None:
    found = find_capabilities()
    assert 1 <= found["cpu_cores"] <= (os.cpu_count() or 1)
    assert found["memory_gb"] > 0
    assert (found["gpu"], found["gpu_count"]) == (None, 0)
    assert find_capabilities(gpus=2)["gpu"] == "nvidia"


@pytest.mark.parametrize(("cpu", "cores"), [("50000 100000\n", 1), ("max 100000\n", None), ("x y", None)])
def test_a_container_has_what_it_may_use(tmp_path: Path, cpu: str, cores: int | None) -> None:
    (tmp_path / "cpu.max").write_text(cpu)
    (tmp_path / "memory.max").write_text(f"{64 * 2**20}\n")
    found = find_capabilities(tmp_path)
    assert found["cpu_cores"] == (cores or len(os.sched_getaffinity(0)))
    assert found["memory_gb"] == 0.06


def test_settings_say_what_nobody_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("NAME", "box-7"),
        ("POOL", "gpu"),
        ("LABELS", "fast, red"),
        ("CAPABILITIES", "gpu=amd, memory_gb=64,spot=true"),
    ):
        monkeypatch.setenv(f"AAICLICK_NODE_{name}", value)
    reset_settings()
    node = describe_node(capabilities={"gpu": "nvidia"}, labels=["red", "own"])
    assert (node.name, node.pool, node.capabilities["labels"]) == ("box-7", "gpu", ["fast", "red", "own"])
    assert [node.capabilities[name] for name in ("gpu", "memory_gb", "spot")] == ["nvidia", 64, True]
    typed = describe_node("typed", pool="own")
    assert (typed.name, typed.pool, typed.capabilities["gpu"]) == ("typed", "own", "amd")


@pytest.mark.parametrize(
    ("name", "value"), [("CAPABILITIES", "gpu"), ("CAPABILITIES", "=1"), ("NAME", "x" * 201), ("LABELS", "a\nb")]
)
def test_settings_that_say_nothing_of_use_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"AAICLICK_NODE_{name}", value)
    reset_settings()
    with pytest.raises(ConfigError, match=f"AAICLICK_NODE_{name}"):
        describe_node()


def test_what_is_said_replaces_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_discovery, "executor_types", lambda: ("python", "shell"))
    node = describe_node("box", capabilities={"gpu": "amd", "rack": 7, "labels": ["a"]}, labels=["b", "a"])
    assert (node.name, node.executor_types) == ("box", ["python", "shell"])
    assert (node.capabilities["gpu"], node.capabilities["rack"], node.capabilities["labels"]) == ("amd", 7, ["a", "b"])
    with pytest.raises(InputError, match="capability"):
        describe_node("box", labels=[" "])


def test_a_machine_grants_what_was_found_unless_something_else_is_set_or_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [{"device": str(index), "memory_mb": 100, "model": "A"} for index in range(2)]
    monkeypatch.setattr(node_discovery, "find_gpus", lambda: gpus)
    found = describe_node("box").resources
    assert found["gpu"] == gpus
    assert found["cpu"] == len(os.sched_getaffinity(0))
    assert found["memory_mb"] > 0
    assert describe_node("box").capabilities["gpu_count"] == 2
    monkeypatch.setenv("AAICLICK_RESOURCES", "licence:a=2,cpu=1.5,gpu=1")
    reset_settings()
    said = describe_node("box", resources={"cpu": 3, "memory_mb": 0}).resources
    assert said == {"cpu": 3, "licence:a": 2, "gpu": [{"device": "0", "memory_mb": None}]}
    assert describe_node("box", resources={"gpu": gpus, "gpu_memory_mb": 50}).resources["gpu"][1]["memory_mb"] == 50


@pytest.mark.parametrize("wrong", ["gpu", "gpu=", "gpu=x", "gpu=-1", "gpu=1,gpu=2", "a b=1", ","])
def test_a_setting_that_names_no_amounts_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("AAICLICK_RESOURCES", wrong)
    reset_settings()
    with pytest.raises(ConfigError, match="AAICLICK_RESOURCES"):
        describe_node("box")
