"""Reduces a claim to the inputs it needs. Claims of one batch share the inputs of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.values.reference_marks import marks_of


def narrowed(claim: Claim) -> Claim:
    """Return the claim with only those inputs that its own arguments refer to, directly or through other inputs."""
    if not (claim.inputs or claim.members or claim.outputs):
        return claim
    try:
        return _narrowed(claim)
    except ValueError:  # the arguments cannot be decoded: the run will fail with that
        return claim


def _narrowed(claim: Claim) -> Claim:
    inputs: dict[int, str | None] = {}
    members: dict[int, list[int]] = {}
    outputs: dict[int, int] = {}
    texts: list[str] = [claim.kwargs_json]
    while texts:
        for kind, payload in marks_of(texts.pop()):
            if kind == "group" and payload in claim.outputs:
                outputs[payload] = claim.outputs[payload]
                texts += _taken([outputs[payload]], claim.inputs, inputs)
            elif kind == "group" and payload in claim.members and payload not in members:
                members[payload] = claim.members[payload]
                texts += _taken(claim.members[payload], claim.inputs, inputs)
            elif kind == "task":
                texts += _taken([payload], claim.inputs, inputs)
    return replace(claim, inputs=inputs, members=members, outputs=outputs)


def _taken(tasks: Sequence[object], known: dict[int, str | None], inputs: dict[int, str | None]) -> list[str]:
    """Copy the results of these tasks to `inputs`. Return the new ones, which may refer to further tasks."""
    found: list[str] = []
    for task in tasks:
        if task in known and task not in inputs:
            text = inputs[task] = known[task]
            if text is not None:
                found.append(text)
    return found
