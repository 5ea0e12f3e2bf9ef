"""Checks the ownership of files and directories: those that another user owns or may write must not be used.

A user who may write them decides which tasks run here, with this process's rights.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """What is wrong with a path's ownership or mode, and the shell command that mends it."""

    cause: str
    command: str

    @property
    def hint(self) -> str:
        return f"To fix it: {self.command}"


def fault_of(place: Path) -> Fault | None:
    """Return why this process must not use a file or directory; None if it may, or if the path does not exist.

    For a symbolic link both the link's owner and its target are checked. Root is no exception: it would act on
    behalf of the owner of the path.
    """
    try:
        link, found = os.lstat(place), os.stat(place)
    except OSError:  # missing or unreadable: the caller that opens it gets the error
        return None
    us, target = os.geteuid(), shlex.quote(os.path.realpath(place))
    if link.st_uid not in (us, 0) and stat.S_ISLNK(link.st_mode):
        cause = f"it is a link of {_user(link.st_uid)}, and this process runs as {_user(us)}"
        return Fault(cause, f"chown -h {us} {shlex.quote(os.path.abspath(place))}")
    deep = "-R " if stat.S_ISDIR(found.st_mode) else ""
    if found.st_uid not in (us, 0):  # files of root are safe: root can do anything anyway
        cause = f"it belongs to {_user(found.st_uid)}, and this process runs as {_user(us)}"
        return Fault(cause, f"chown {deep}{us} {target}")
    if found.st_mode & stat.S_IWOTH:
        return Fault("every user can write to it", f"chmod {deep}o-w {target}")
    if found.st_mode & stat.S_IWGRP and found.st_gid not in {os.getegid(), *os.getgroups()}:
        cause = f"the group {found.st_gid} may write it, and this process is not in that group"
        return Fault(cause, f"chmod {deep}g-w {target}")
    return None


def fault_around(directory: Path) -> Fault | None:
    """Return why files in a directory are unsafe: any user may rename or delete entries of it or of a parent. Or None.

    Directories with the sticky bit, like /tmp, are safe. For a symbolic link both the path and its target are checked.
    """
    ways = dict.fromkeys((Path(os.path.abspath(directory)), Path(os.path.realpath(directory))))
    for place in dict.fromkeys(each for way in ways for each in (way, *way.parents)):
        try:
            mode = os.stat(place).st_mode
        except OSError:  # missing: it is created later, for its owner only
            continue
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            target = os.path.realpath(place)
            return Fault(f"every user can write to the directory {target}", f"chmod o-w {shlex.quote(target)}")
    return None


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"
