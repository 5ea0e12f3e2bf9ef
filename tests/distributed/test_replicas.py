"""Servers by the name of the design."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.distributed import create_a2a_server
from aaiclick.errors import ConfigError, InputError
from aaiclick.server.openapi import document


def test_a_server_is_made_and_a_replica_of_one_that_is_named(tmp_path: Path) -> None:
    assert create_a2a_server().title == "aaiclick"
    which = {"coordinator_url": "http://coordinator:8000", "token": "aai_1_x", "file": tmp_path / "replica.db"}
    replica = create_a2a_server(mode="distributed_replica", **which)
    assert "/api/v1/jobs/{job_id}" in document(replica)["paths"]
    assert not (tmp_path / "replica.db").exists()  # nothing is opened yet
    with pytest.raises(InputError, match="coordinator_url"):
        create_a2a_server(mode="distributed_replica")
    with pytest.raises(ConfigError, match="role replica"):
        create_a2a_server(mode="distributed_replica", coordinator_url="http://coordinator:8000")
    with pytest.raises(InputError, match="only for a distributed_replica"):
        create_a2a_server(coordinator_url="http://coordinator:8000")
    with pytest.raises(InputError, match="mode"):
        create_a2a_server(mode="primary")
