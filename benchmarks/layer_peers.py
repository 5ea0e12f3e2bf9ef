"""The environment of the peers of our query layer, and questions to them, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ibis-framework[clickhouse]", "packaging", "sqlglot", "chdb-core", "duckdb", "tpchgen-cli", "polars")
"""Ibis 12.0 needs `packaging` for its ClickHouse backend, and does not say so."""


def peers_python() -> Path:
    """The interpreter of the peers' environment, which is made if it is not there."""
    place = Path(os.environ.get("BENCH_LAYERS", ROOT / ".layers"))
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def ask_peer(what: str, **given: Any) -> dict[str, Any]:
    """The answer of `benchmarks.peer_layers`."""
    command = [str(peers_python()), "-m", "benchmarks.peer_layers", what]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{what} failed: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout))
