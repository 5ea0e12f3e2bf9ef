"""Run a command with servers: `python -m tests.servers postgres mariadb redis -- command ...`

The command finds each server's URL in TEST_POSTGRES_URL and its like, and its exit code is ours.
"""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack

from . import SERVERS, url_variable
from .process import ServerDidNotStart
from .programs import ServerMissing


def main(arguments: list[str]) -> int:
    names, command = split(arguments)
    unknown = [name for name in names if name not in SERVERS]
    if unknown or not command:
        print(f"usage: python -m tests.servers [{'|'.join(SERVERS)}]... -- command ...", file=sys.stderr)
        return 2
    with ExitStack() as running:
        urls = {}
        for name in names:
            try:
                urls[url_variable(name)] = running.enter_context(SERVERS[name]())
            except (ServerMissing, ServerDidNotStart) as error:
                print(f"tests.servers: {name}: {error}", file=sys.stderr)
                return 1
        return run(command, os.environ | urls)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The servers' names, and the command after the first `--`."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def run(command: list[str], environment: dict[str, str]) -> int:
    """Run the command; a Ctrl-C is its own to handle, a request to end is passed on."""
    signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which the command would inherit
    process = subprocess.Popen(command, env=environment)
    for passed_on in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(passed_on, lambda number, _: process.send_signal(number))
    code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
