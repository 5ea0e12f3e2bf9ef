"""Every client keeps the contract: test_data_client.py asks each of them, here are their signatures."""

from __future__ import annotations

import inspect

import pytest

from aaiclick.data.clients.contract import DataClient, Rows
from aaiclick.data.clients.local import LocalClient
from aaiclick.data.clients.pool import PooledClient
from aaiclick.data.clients.servers import ReplicasClient

VERBS = ["command", "rows", "make", "rows_now", "arrow", "batches", "save", "insert", "close"]


@pytest.mark.parametrize("kind", [PooledClient, LocalClient, ReplicasClient])
@pytest.mark.parametrize("verb", VERBS)
def test_every_client_has_the_verbs_of_the_contract(kind: type, verb: str) -> None:
    wanted, found = (inspect.signature(getattr(each, verb)) for each in (DataClient, kind))
    assert list(found.parameters) == list(wanted.parameters)


def test_the_contract_has_no_other_verbs() -> None:
    assert [name for name in vars(DataClient) if not name.startswith("_")] == VERBS


def test_rows_are_columns_with_their_names_and_types() -> None:
    assert Rows(["a"], ["Int8"], [[1]])._fields == ("names", "types", "columns")
