"""Where agents are answered: what is loaded for them, and when."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from aaiclick.server.mcp.agents import Agents
from tests.server.mcp.conftest import Agent


def test_a_server_loads_the_protocol_when_the_first_agent_asks() -> None:
    code = "import sys, aaiclick.server.serving; print(sorted({'mcp', 'mcp_types', 'httpx2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_server_without_the_protocol_does_not_start() -> None:
    code = "import sys; sys.modules['mcp'] = None; import aaiclick.server.serving"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.rstrip().endswith("ModuleNotFoundError: No module named 'mcp'")


async def test_agents_that_come_first_together_are_all_answered(agent: Agent) -> None:
    named = await asyncio.gather(*(agent.names() for _ in range(5)))
    assert len({tuple(names) for names in named}) == 1


async def test_after_the_end_nothing_is_opened() -> None:
    agents = Agents(write=False)
    await agents.close()
    with pytest.raises(RuntimeError, match="has ended"):
        await agents.manager()
