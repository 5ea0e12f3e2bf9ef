"""Affinity: needs that name the node of a task's last attempt, or that of its inputs.

What a user says (`retry_node`, `near`) is the same for all tasks of a lane. Once it is known which node it means for a
task, the task changes to the lane of the same needs with that node: `previous`, or `inputs_on`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SAME, OTHER, INPUTS = "same", "other", "inputs"


def after_attempt(needs: Mapping[str, Any], node: str | None, *, failed: bool | None) -> dict[str, Any]:
    """Return the needs of the next attempt after one on this node; None if it is not known which node that was.

    `failed` None: the attempt was stopped, so that it is not known; a node where one failed before stays named. The
    node of the inputs does not count any more once the node of an attempt is named.
    """
    if "retry_node" not in needs or (failed is None and needs["retry_node"] == OTHER):
        return dict(needs)
    if node is None or (needs["retry_node"] == OTHER and not failed):
        return _without(needs, "previous")
    return {**_without(needs, "previous", "inputs_on"), "previous": node}


def near_inputs(needs: Mapping[str, Any], node: str | None) -> dict[str, Any]:
    """Return the needs of a task most of whose inputs were made on this node; None if that is not known."""
    if needs.get("near") != INPUTS:
        return dict(needs)
    named = {} if node is None or "previous" in needs else {"inputs_on": node}
    return {**_without(needs, "inputs_on"), **named}


def wished_node(needs: Mapping[str, Any], otherwise: str) -> str:
    """Return the name of the node that these needs wish for, if they name one."""
    found = needs.get("previous") if needs.get("retry_node") == SAME else None
    return str(found or needs.get("inputs_on") or otherwise)


def failed_on(needs: Mapping[str, Any], node: str) -> bool:
    """Return whether the last attempt failed on this node, and the next is to run on another one."""
    return needs.get("retry_node") == OTHER and needs.get("previous") == node


def _without(needs: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: need for name, need in needs.items() if name not in names}
