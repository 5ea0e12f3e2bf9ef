"""Finds out what this machine has, for its node in the registry: processors, memory, GPUs, executors."""

from __future__ import annotations

import ctypes
import os
import platform
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aaiclick.config import settings
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.nodes import read_capability, with_labels
from aaiclick.orchestration.submitting.executors import executor_types

GB = 1024**3
_UNLIMITED = 2**60
"""Limits of control groups beyond this are none."""


def describe_node(
    name: str | None = None,
    *,
    pool: str | None = None,
    capabilities: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
) -> NodeDescription:
    """Return what this machine has.

    What is given here goes over the settings, and these over what was found; labels add up.
    """
    chosen = settings()
    found = find_capabilities() | dict(map(read_capability, chosen.node_capabilities)) | dict(capabilities or {})
    called = chosen.node_name or socket.gethostname()
    return NodeDescription(
        name=called if name is None else name,
        pool=chosen.node_pool if pool is None else pool,
        capabilities=with_labels(found, [*chosen.node_labels, *labels]),
        executor_types=list(executor_types()),
    )


def find_capabilities(groups: Path = Path("/sys/fs/cgroup")) -> dict[str, Any]:
    """Return what can be found out of this machine, or of the container that this process is in.

    `gpu` is None where no driver of NVIDIA answers: other GPUs are not looked for, and can be named by hand.
    """
    gpus = count_nvidia_gpus()
    return {
        "cpu_cores": _cores(groups),
        "memory_gb": _memory_gb(groups),
        "gpu": "nvidia" if gpus else None,
        "gpu_count": gpus,
        "labels": [],
        "os": platform.system().lower(),
        "arch": platform.machine(),
        "python": platform.python_version(),
        "host": socket.gethostname(),
    }


def count_nvidia_gpus(library: str = "libnvidia-ml.so.1") -> int:
    """Return how many GPUs the driver of NVIDIA knows; 0 if there is no driver, or it does not answer."""
    try:
        nvml = ctypes.CDLL(library)
        if nvml.nvmlInit_v2() != 0:
            return 0
        count = ctypes.c_uint()
        answered = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
        nvml.nvmlShutdown()
    except (OSError, AttributeError):  # no such library, or one without these functions
        return 0
    return count.value if answered else 0


def _cores(groups: Path) -> int:
    """Return how many processors this process may use, at least one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _read(groups / "cpu.max").partition(" ")
    if quota.isdecimal() and period.isdecimal() and int(period):
        allowed = min(allowed, -(-int(quota) // int(period)))
    return max(1, allowed)


def _memory_gb(groups: Path) -> float:
    """Return the memory that this process may use, in GB of 2**30 bytes."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = _read(groups / name)
        if limit.isdecimal() and int(limit) < _UNLIMITED:
            size = min(size, int(limit))
    return round(size / GB, 2)


def _read(path: Path) -> str:
    """Return the text of a file of the system, or nothing if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
