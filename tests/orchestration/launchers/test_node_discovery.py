"""What a machine has: as its files say, and no GPU where no driver answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import ConfigError, InputError
from aaiclick.orchestration.launchers import node_discovery
from aaiclick.orchestration.launchers.node_discovery import count_nvidia_gpus, describe_node, find_capabilities

NVML = """
int nvmlInit_v2(void) { return FAILS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlShutdown(void) { return 0; }
"""


def test_this_machine_has_processors_and_memory_and_its_gpus_are_those_of_a_driver_that_answers() -> None:
    found = find_capabilities()
    assert 1 <= found["cpu_cores"] <= (os.cpu_count() or 1)
    assert found["memory_gb"] > 0
    assert found["gpu"] == ("nvidia" if count_nvidia_gpus() else None)
    assert count_nvidia_gpus("libno-such-driver.so") == 0


@pytest.mark.parametrize(("cpu", "cores"), [("50000 100000\n", 1), ("max 100000\n", None), ("x y", None)])
def test_a_container_has_what_it_may_use(tmp_path: Path, cpu: str, cores: int | None) -> None:
    (tmp_path / "cpu.max").write_text(cpu)
    (tmp_path / "memory.max").write_text(f"{64 * 2**20}\n")
    found = find_capabilities(tmp_path)
    assert found["cpu_cores"] == (cores or len(os.sched_getaffinity(0)))
    assert found["memory_gb"] == 0.06


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler for a driver of our own")
@pytest.mark.parametrize(("fails", "count"), [(0, 2), (9, 0)])
def test_a_driver_says_how_many_gpus_there_are(tmp_path: Path, fails: int, count: int) -> None:
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / f"libnvml{fails}.so"
    subprocess.run(["cc", f"-DFAILS={fails}", "-shared", "-o", library, tmp_path / "nvml.c"], check=True, timeout=60)
    assert count_nvidia_gpus(str(library)) == count


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
