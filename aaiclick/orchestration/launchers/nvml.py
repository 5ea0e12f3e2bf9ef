"""Asks the driver of NVIDIA which GPUs there are, by its library NVML. No Python package is needed for that."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
MB = 2**20
_TEXT_BYTES = 96


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def find_gpus(library: str = LIBRARY) -> list[dict[str, Any]]:
    """Return the GPUs that the driver knows, each with `device`, `memory_mb` and `model`; [] if no driver answers.

    A GPU that is cut into slices (MIG) counts as these: a slice is named by its UUID, a whole GPU by its index.
    """
    try:
        nvml = ctypes.CDLL(library)
        if nvml.nvmlInit_v2() != 0:
            return []
        try:
            return list(_each(nvml))
        finally:
            nvml.nvmlShutdown()
    except (OSError, AttributeError):  # no such library, or one without these functions
        return []


def _each(nvml: ctypes.CDLL) -> Iterator[dict[str, Any]]:
    count = ctypes.c_uint()
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return
    for index in range(count.value):
        device = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) != 0:
            continue
        slices = list(_slices(nvml, device))
        yield from slices or [_described(nvml, device, str(index))]


def _slices(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> Iterator[dict[str, Any]]:
    """Yield the slices of a GPU; none if it is not cut, or its driver knows of no slices."""
    most = ctypes.c_uint()
    if not hasattr(nvml, "nvmlDeviceGetMigDeviceHandleByIndex"):
        return
    if nvml.nvmlDeviceGetMaxMigDeviceCount(device, ctypes.byref(most)) != 0:
        return
    for index in range(most.value):
        slice_ = ctypes.c_void_p()
        if nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index, ctypes.byref(slice_)) != 0:
            continue
        if name := _text(nvml.nvmlDeviceGetUUID, slice_):
            yield _described(nvml, slice_, name)


def _described(nvml: ctypes.CDLL, device: ctypes.c_void_p, name: str) -> dict[str, Any]:
    memory = _Memory()
    is_known = nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    found: dict[str, Any] = {"device": name, "memory_mb": memory.total // MB if is_known else None}
    model = _text(nvml.nvmlDeviceGetName, device)
    return found | ({"model": model} if model else {})


def _text(ask: Any, device: ctypes.c_void_p) -> str:
    answer = ctypes.create_string_buffer(_TEXT_BYTES)
    if ask(device, answer, ctypes.c_uint(_TEXT_BYTES)) != 0:
        return ""
    return answer.value.decode("utf-8", "replace").strip()
