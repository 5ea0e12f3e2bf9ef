"""The package as a program: what is so before anything else is imported."""

import subprocess
import sys

import pytest

COLLECTS = """
import gc, sys
usual = gc.get_threshold()
import aaiclick.__main__
begun = gc.get_threshold()
cycles = [[] for _ in range(150_000)]
assert begun[0] > usual[0] and gc.get_threshold() == usual, (begun, gc.get_threshold())
"""
KEEPS = """
import gc
import aaiclick.__main__
gc.set_threshold(20_000, 20, 20)
cycles = [[] for _ in range(150_000)]
assert gc.get_threshold() == (20_000, 20, 20)
"""


@pytest.mark.parametrize("code", [COLLECTS, KEEPS], ids=["then as ever", "or as was set meanwhile"])
def test_garbage_is_looked_for_later(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
