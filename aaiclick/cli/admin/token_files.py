"""The first token goes into a file that only its owner can read: what a terminal or a log shows is read by others."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

from aaiclick.backend import ensure_root
from aaiclick.orchestration.access.tokens import create_token


async def token_in_file(name: str) -> Path:
    """Create an admin token in a new file; existing files are never written to."""
    path, descriptor = _new_file(ensure_root())
    with os.fdopen(descriptor, "w") as file:
        try:
            made = await create_token(name, "admin")
        except BaseException:
            path.unlink()
            raise
        file.write(f"{made.text}\n")
    return path


def _new_file(root: Path) -> tuple[Path, int]:
    for number in count(1):
        path = root / ("admin.token" if number == 1 else f"admin-{number}.token")
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
    raise AssertionError("numbers do not end")
