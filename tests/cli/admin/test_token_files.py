"""The file with the first token."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from aaiclick.cli.admin.token_files import token_in_file
from aaiclick.errors import InputError
from aaiclick.orchestration.access.tokens import authenticate


async def test_only_its_owner_can_read_it(root: Path) -> None:
    before = os.umask(0)
    try:
        path = await token_in_file("me")
    finally:
        os.umask(before)
    assert path == root / "admin.token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (await authenticate(path.read_text().strip())).role == "admin"


def test_what_is_there_is_left_as_it_is(root: Path, tmp_path: Path) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    (root / "admin.token").symlink_to(tmp_path / "elsewhere")
    (root / "admin-2.token").write_text("mine")
    assert asyncio.run(token_in_file("me")) == root / "admin-3.token"
    assert not (tmp_path / "elsewhere").exists()
    assert (root / "admin-2.token").read_text() == "mine"


def test_without_a_token_there_is_no_file(root: Path) -> None:
    with pytest.raises(InputError):
        asyncio.run(token_in_file("\n"))
    assert not list(root.glob("*.token"))
