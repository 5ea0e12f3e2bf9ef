"""The guide names every method."""

from __future__ import annotations

import re
from pathlib import Path

from aaiclick.client import APIClient

GUIDE = Path(__file__).parents[2] / "docs/guides/client.md"


def test_every_method_is_named_and_no_other() -> None:
    table = GUIDE.read_text(encoding="utf-8").partition("## Methods")[2]
    methods = {name for name in vars(APIClient) if not name.startswith("_")} - {"url", "close"}
    assert set(re.findall(r"`(\w+)`", table)) == methods
