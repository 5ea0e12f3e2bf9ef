"""How much work something is: counted in operations of the interpreter, which no machine's load changes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any


class Operations:
    """Counts each operation of Python code that is begun while it counts, in this thread."""

    def __init__(self) -> None:
        self.number = 0

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.number += event == "opcode"
        return self._trace

    async def of(self, work: Callable[[], Awaitable[Any]]) -> int:
        """What this work takes."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            await work()
        finally:
            sys.settrace(before)
        return self.number
