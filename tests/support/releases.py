"""Processes of releases that do not exist yet: they say, and understand, other versions of the protocol for workers."""

from __future__ import annotations


def speaking(version: int) -> tuple[str, str]:
    """The command `aaiclick` of a release whose protocol has this version, as a program for `Fleet.start`."""
    return "-c", PROGRAM.format(version=version)


PROGRAM = """
import runpy
from aaiclick.orchestration.coordinator.http import calls, protocol
from aaiclick.server.node import road

calls.VERSION = protocol.VERSION = {version}
road.VERSIONS = protocol.VERSIONS = protocol.understood({version})
runpy.run_module("aaiclick", run_name="__main__", alter_sys=True)
"""
