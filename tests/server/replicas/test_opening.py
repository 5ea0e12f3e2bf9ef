"""What a replica is started with: addresses, a token, and a file that no other one has."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.config import settings
from aaiclick.errors import ConfigError, Conflict, NotAllowed, NotAuthenticated
from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.replicas.opening import check_replicated, replica_opened, replicated_of
from tests.support.front_door import local
from tests.support.node_server import node_server

__all__ = ["local"]


def test_addresses_are_read_and_the_file_is_in_the_local_root(local: Path) -> None:
    found = replicated_of("http://a:1, https://b", token="aai_1_x")
    assert [address.url for address in found.addresses] == ["http://a:1", "https://b"]
    assert found.url == "http://a:1"
    assert found.file == settings().local_root / "replica.db"
    for wrong in ("", ",", "a:1", "http://", "http://user@a:1"):
        with pytest.raises(ConfigError):
            replicated_of(wrong, token="aai_1_x")


def test_without_a_token_it_is_said_how_to_make_one(local: Path) -> None:
    with pytest.raises(ConfigError, match="aaiclick token create NAME --role replica"):
        replicated_of("http://a:1")


async def test_only_a_token_for_replicas_will_do(migrated_sql_url: str, tmp_path: Path) -> None:
    async with node_server(migrated_sql_url, "admin", "replica") as server:
        await check_replicated(replicated_of(server.url, tmp_path / "r.db", server.tokens["replica"]))
        with pytest.raises(NotAllowed, match="role replica"):
            await check_replicated(replicated_of(server.url, tmp_path / "r.db", server.tokens["admin"]))
        with pytest.raises(NotAuthenticated):
            await check_replicated(replicated_of(server.url, tmp_path / "r.db", "aai_1_" + "x" * 43))
    assert Role.REPLICA.may(Role.REPLICA)


async def test_a_coordinator_that_is_away_may_come_later(tmp_path: Path) -> None:
    await check_replicated(replicated_of("http://127.0.0.1:1", tmp_path / "r.db", "aai_1_x"))


async def test_two_replicas_do_not_share_a_file(tmp_path: Path) -> None:
    replicated = replicated_of("http://127.0.0.1:1", tmp_path / "r.db", "aai_1_x")
    async with replica_opened(replicated) as replica:
        assert not replica.progress.is_whole
        with pytest.raises(Conflict, match="another replica has it"):
            async with replica_opened(replicated):
                pass
    async with replica_opened(replicated):
        pass
