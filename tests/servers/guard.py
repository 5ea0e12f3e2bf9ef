"""Run one server and end it when whoever asked for it is gone; run as a script, by file name.

    guard.py DIRECTORY ACCOUNT SIGNAL COMMAND...

Standard input is the leash: it closes when the parent stops the server, exits or is killed. The parent's id is
watched too, because a forked child of the parent may hold the other end of the pipe open. The guard lives in its own
session, where a Ctrl-C at the terminal does not reach it.
"""

import os
import select
import shutil
import signal
import subprocess
import sys

POLL_EVERY_S = 0.5
PATIENCE_S = 10


def main(directory: str, account: str, stop_signal: str, *command: str) -> int:
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(os.path.join(directory, "server.log"), "ab") as log:
        server = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **as_account(account),
        )
    try:
        while server.poll() is None:
            leash, _, _ = select.select([sys.stdin], [], [], POLL_EVERY_S)
            if leash or os.getppid() != parent:
                return 0
        return server.returncode or 1
    finally:
        if server.poll() is None:
            end(server, signal.Signals[stop_signal])
            shutil.rmtree(directory, ignore_errors=True)


def as_account(account: str) -> dict:
    """Arguments that make a command run as `account`; none for our own."""
    return {"user": account, "group": primary_group(account), "extra_groups": []} if account else {}


def primary_group(account: str) -> int:
    import pwd  # not there on Windows, where nothing runs as another account

    return pwd.getpwnam(account).pw_gid


def end(server: "subprocess.Popen[bytes]", stop_signal: signal.Signals) -> None:
    server.send_signal(stop_signal)
    try:
        server.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
