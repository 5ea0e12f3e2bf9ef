"""Whose files and directories are: those that somebody else owns, or may write, are not used.

Whoever may write them decides what tasks run here, and with what rights.
"""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """What is wrong with a place, and the command that mends it."""

    cause: str
    command: str

    @property
    def hint(self) -> str:
        return f"To mend it: {self.command}"


def fault_of(place: Path) -> Fault | None:
    """Why a file or directory must not be used by this process; None if it may, or is not there.

    A link is judged by who made it, and by what it leads to. A process of root is no exception: it would act for
    whoever owns the place.
    """
    try:
        link, found = os.lstat(place), os.stat(place)
    except OSError:  # not there, or out of reach: whoever uses it is told
        return None
    us, target = os.geteuid(), shlex.quote(os.path.realpath(place))
    if link.st_uid not in (us, 0) and stat.S_ISLNK(link.st_mode):
        cause = f"it is a link of {_user(link.st_uid)}, and this process runs as {_user(us)}"
        return Fault(cause, f"chown -h {us} {shlex.quote(os.path.abspath(place))}")
    deep = "-R " if stat.S_ISDIR(found.st_mode) else ""
    if found.st_uid not in (us, 0):  # what root wants, root can do anyway
        cause = f"it belongs to {_user(found.st_uid)}, and this process runs as {_user(us)}"
        return Fault(cause, f"chown {deep}{us} {target}")
    if found.st_mode & stat.S_IWOTH:
        return Fault("every user may write it", f"chmod {deep}o-w {target}")
    if found.st_mode & stat.S_IWGRP and found.st_gid not in {os.getegid(), *os.getgroups()}:
        cause = f"the group {found.st_gid} may write it, and this process is not in that group"
        return Fault(cause, f"chmod {deep}g-w {target}")
    return None


def fault_around(directory: Path) -> Fault | None:
    """Why nothing in a directory is safe: every user may take away what is there, or what is above it.

    In a directory like /tmp nobody may. Of a link, both ways are looked at.
    """
    ways = dict.fromkeys((Path(os.path.abspath(directory)), Path(os.path.realpath(directory))))
    for place in dict.fromkeys(each for way in ways for each in (way, *way.parents)):
        try:
            mode = os.stat(place).st_mode
        except OSError:  # it is made later, for its owner
            continue
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            target = os.path.realpath(place)
            return Fault(f"every user may write the directory {target}", f"chmod o-w {shlex.quote(target)}")
    return None


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"
