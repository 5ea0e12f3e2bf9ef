"""haproxy for tests, with the configuration that docs/guides/fleet.md recommends.

Run as a module, it installs what is missing; its exit code says whether there is a haproxy now.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .process import answer_on, private_directory, serving, unprivileged_account
from .programs import find_program, install_packages

PACKAGES = {"debian": "haproxy", "homebrew": "haproxy"}
GUIDE = Path(__file__).parents[2] / "docs/guides/fleet.md"
BIND = "bind :443 ssl crt /etc/haproxy/aaiclick.pem alpn http/1.1"
IDLE = b"GET /none HTTP/1.0\r\n\r\n"


def can_run() -> bool:
    return find_program("haproxy") is not None


@contextmanager
def server(backends: Sequence[str]) -> Iterator[int]:
    """A haproxy before servers on these addresses (host:port); yields its port on 127.0.0.1, where it speaks HTTP."""
    program = find_program("haproxy")
    assert program is not None, "apt-get install haproxy"
    account = unprivileged_account("haproxy")
    with private_directory(account) as directory:

        def command(port: int) -> list[str]:
            (directory / "haproxy.cfg").write_text(configured(recommended(), f"127.0.0.1:{port}", backends))
            return [str(program), "-db", "-q", "-f", str(directory / "haproxy.cfg")]

        with serving(
            command,
            directory=directory,
            account=account,
            stop_signal=signal.SIGTERM,
            is_ready=lambda port: answer_on(port, IDLE).startswith(b"HTTP/1"),
        ) as port:
            yield port


def recommended() -> str:
    """The configuration of the guide."""
    _, found, rest = GUIDE.read_text().partition("```haproxy\n")
    assert found, f"{GUIDE} has no configuration of haproxy"
    return rest.partition("```")[0]


def configured(text: str, bind: str, backends: Sequence[str]) -> str:
    """The guide's configuration with other addresses, and without TLS before it."""
    lines = text.splitlines()
    servers = [number for number, line in enumerate(lines) if line.split()[:1] == ["server"]]
    assert sum(line.strip() == BIND for line in lines) == 1
    assert len(servers) > 1
    kept = [line.replace(BIND, f"bind {bind}") for number, line in enumerate(lines) if number not in servers]
    kept[servers[0] : servers[0]] = [f"    server s{number} {to}" for number, to in enumerate(backends, 1)]
    return "\n".join(kept) + "\n"


def main() -> int:
    if not can_run():
        install_packages(**PACKAGES)
    return 0 if can_run() else 1


if __name__ == "__main__":
    sys.exit(main())
