"""What the server is asked with."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from aaiclick.server import requests

KINDS = [
    kind
    for kind in vars(requests).values()
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == requests.__name__
]


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_are_refused_everywhere(kind: type[BaseModel]) -> None:
    with pytest.raises(ValidationError, match="nobody_knows"):
        kind(nobody_knows=1)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (requests.JobsQuery, {"limit": 0}),
        (requests.JobsQuery, {"limit": 1001}),
        (requests.JobsQuery, {"before": "٣"}),
        (requests.LogsQuery, {"offset": 2**63}),
        (requests.LogsQuery, {"epoch": -1}),
        (requests.Clear, {"dry_run": "yes"}),
        (requests.SubmitJob, {"name": "x", "entrypoint": "a.b", "priority": 1.5}),
    ],
)
def test_what_is_out_of_range_or_of_another_type(kind: type[BaseModel], given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        kind(**given)
