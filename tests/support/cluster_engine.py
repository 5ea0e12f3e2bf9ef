"""The embedded engine as a cluster of itself: what can be run of a cluster without a server.

`one` has one shard, which is this engine. `two` has it twice: each table read through it has every row twice, and what
would be looked at shard by shard gives another answer than what is looked at as a whole. ON CLUSTER and replicated
tables are left out: both need more than the embedded engine has.

Run in a process of its own: python -m tests.support.cluster_engine cluster module.function directory
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from aaiclick.config import reset_settings
from aaiclick.data.clients import servers
from aaiclick.data.clients.contract import Rows
from aaiclick.data.clients.tables import TOKENS, ClusterTables, Tables, find_tables
from aaiclick.data.embedded import engine
from aaiclick.data.gateway import serve_directory

_SHARD = """<shard><internal_replication>true</internal_replication>
<replica><host>{host}</host><port>9000</port></replica></shard>"""
_CONFIG = f"""<clickhouse><tcp_port>9000</tcp_port><remote_servers>
<one>{_SHARD.format(host="localhost")}</one>
<two>{_SHARD.format(host="localhost")}{_SHARD.format(host="127.0.0.1")}</two>
</remote_servers></clickhouse>"""


def run(cluster: str, what: str, directory: Path) -> object:
    """What a coroutine function gives, called with the settings of a cluster."""
    config = directory / "cluster.xml"
    config.write_text(_CONFIG)
    spilling, opening = engine.spilling, cast(Any, engine)
    opening.spilling = lambda memory: {**spilling(memory), "config-file": str(config)}
    cast(Any, servers).find_tables = _without_machines
    os.environ["AAICLICK_LOCAL_ROOT"] = str(directory)
    reset_settings()
    serving = serve_directory(directory / "data", port=0)
    assert serving is not None
    where = serving.endpoint
    address = where.tcp.removeprefix("http://")
    os.environ["AAICLICK_CH_URL"] = f"clickhouse://{where.user}:{where.password}@{address}/default"
    os.environ["AAICLICK_CH_CLUSTER"] = cluster
    reset_settings()
    module, _, name = what.rpartition(".")
    return asyncio.run(getattr(importlib.import_module(module), name)())


def _without_machines(cluster: str, ask: Callable[[str], Rows]) -> Tables:
    found = find_tables(cluster, ask)
    assert isinstance(found, ClusterTables)
    return replace(found, engine="MergeTree", window=TOKENS, on="")


if __name__ == "__main__":
    answer = run(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    print(json.dumps(answer, default=str), flush=True)
    os._exit(0)  # the engine's own threads do not always end well
