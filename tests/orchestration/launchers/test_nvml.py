"""GPUs as the library of their driver tells of them: a library of our own in C, with the same functions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from aaiclick.orchestration.launchers.nvml import find_gpus
from aaiclick.orchestration.rules.resources import check_offer

NVML = r"""
#include <stdio.h>
#include <string.h>
typedef struct { int index; int slice; } device;
static device gpus[COUNT + 1], slices[4];
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = COUNT; return COUNTS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **found) {
    gpus[index].index = index; *found = &gpus[index]; return index == BROKEN ? 9 : 0; }
int nvmlDeviceGetMemoryInfo(device *which, memory *found) {
    found->total = (which->slice ? 5ULL : 24ULL + which->index) * 1024 * 1024; return MEMORY; }
int nvmlDeviceGetName(device *which, char *name, unsigned size) {
    snprintf(name, size, "Model %d", which->index); return 0; }
int nvmlDeviceGetUUID(device *which, char *name, unsigned size) {
    snprintf(name, size, "MIG-%d", which->slice); return 0; }
int nvmlDeviceGetMaxMigDeviceCount(device *which, unsigned *count) {
    *count = which->index == CUT ? 4 : 0; return 0; }
#if CUT >= 0
int nvmlDeviceGetMigDeviceHandleByIndex(device *which, unsigned index, device **found) {
    slices[index].slice = index + 1; *found = &slices[index]; return index < 2 ? 0 : 6; }
#endif
"""

USUAL = {"COUNT": 2, "INIT": 0, "COUNTS": 0, "BROKEN": -1, "MEMORY": 0, "CUT": -1}
WHOLE = [
    {"device": "0", "memory_mb": 24, "model": "Model 0"},
    {"device": "1", "memory_mb": 25, "model": "Model 1"},
]
SLICES = [{"device": f"MIG-{number}", "memory_mb": 5, "model": "Model 0"} for number in (1, 2)]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler for a driver of our own")
@pytest.mark.parametrize(
    ("unusual", "found"),
    [
        ({}, WHOLE),
        ({"INIT": 9}, []),
        ({"COUNTS": 9}, []),
        ({"COUNT": 0}, []),
        ({"BROKEN": 0}, WHOLE[1:]),
        ({"MEMORY": 9}, [gpu | {"memory_mb": None} for gpu in WHOLE]),
        ({"CUT": 1}, [WHOLE[0], *SLICES]),
    ],
    ids=str,
)
def test_a_driver_tells_of_its_gpus(tmp_path: Path, unusual: dict[str, int], found: list[dict[str, object]]) -> None:
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / f"libnvml{'-'.join(unusual)}.so"
    defined = [f"-D{name}={value}" for name, value in (USUAL | unusual).items()]
    subprocess.run(
        ["cc", *defined, "-w", "-shared", "-fPIC", "-o", library, tmp_path / "nvml.c"], check=True, timeout=60
    )
    assert find_gpus(str(library)) == found
    assert check_offer({"gpu": found}).get("gpu", []) == found


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler for a driver of our own")
def test_a_library_without_these_functions_has_no_gpus(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int other(void) { return 0; }\n")
    library = tmp_path / "libother.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "other.c"], check=True, timeout=60)
    assert find_gpus(str(library)) == []
    assert find_gpus("libno-such-driver.so") == []
