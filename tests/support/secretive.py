"""Bodies that do with a secret what they should not."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from typing import Any

from aaiclick.orchestration import Secret, create_task, job, task
from aaiclick.orchestration.context import get_current_context

VARIABLE = "CANARY_SECRET"


def length(secret: str) -> int:
    return len(secret)


def blab(secret: str) -> None:
    """Print it in every way that there is."""
    print("plain", secret)
    print("in an error", repr(secret), file=sys.stderr)
    sys.stdout.write(secret[:5])
    sys.stdout.flush()
    time.sleep(0.05)
    sys.stdout.write(secret[5:] + "\n")
    sys.stdout.flush()
    logging.getLogger("theirs").warning("logged %s", secret)
    sys.stdout.buffer.write(secret.encode() + b"\n")
    sys.stdout.buffer.flush()


def blab_below(secret: str) -> None:
    """Let others print it: a process, and the descriptor itself."""
    os.write(1, secret[:3].encode())
    time.sleep(0.05)
    os.write(1, secret[3:].encode() + b"\n")
    subprocess.run([sys.executable, "-c", f"print({secret!r})"], check=True)


def blab_and_fail(secret: str) -> None:
    blab(secret)
    fail(secret)


def fail(secret: str) -> None:
    try:
        raise KeyError(secret)
    except KeyError as error:
        raise ValueError(f"cannot log in with {secret}") from error


def give_back(secret: str) -> Any:
    return {"answer": [secret]}


def hand_on(secret: str) -> Any:
    return create_task(length, {"secret": secret})


def hand_on_reference(secret: str) -> Any:
    assert not isinstance(secret, Secret)
    return create_task(length, {"secret": Secret(f"env:{VARIABLE}")})


async def add_to_context(secret: str) -> None:
    await get_current_context().apply(create_task(length, {"secret": secret}, name="made"))


def nested(secrets: Any) -> bool:
    return secrets == {"login": ["user", os.environ[VARIABLE]]}


def print_environment() -> None:
    print(dict(os.environ))


def return_address() -> str:
    return os.environ["AAICLICK_SQL_URL"]


@task
def lengthy(secret: str) -> int:
    return len(secret)


@task(max_retries=1)
def blab_twice(secret: str) -> None:
    blab_and_fail(secret)


@job
def with_a_login(secret: Any) -> Any:
    """A workflow gets the reference, and hands it on."""
    assert isinstance(secret, Secret)
    return lengthy(secret=secret)


@job
def leaky(secret: Any) -> Any:
    return [lengthy(secret=secret), blab_twice(secret=secret)]


def with_login(row: Any, secret: str) -> int:
    return int(row) + len(secret)


async def reach_data() -> Any:
    """Ask for data where the server of the data is not there."""
    from aaiclick.data import create_object_from_value  # here: only this body needs it

    return await create_object_from_value([1, 2])


async def spill_into_data(secret: str) -> Any:
    """Let ClickHouse have it in every place but the rows: queries, names, types, errors."""
    from aaiclick.data import (  # here: only these bodies need it
        col,
        create_object,
        create_object_from_value,
        delete_object,
    )

    rows = await create_object_from_value({"login": ["nobody", "else"], "n": [1, 2]})
    await delete_object("spilled")
    await rows.where(col("login") != secret).materialize("spilled")
    for attempt in (
        lambda: create_object({secret: "Int64"}),
        lambda: create_object({"x": f"Enum8('{secret}' = 1)"}),
        lambda: rows.with_columns(**{secret: col("n")}).materialize("renamed"),
        lambda: rows.where(f"nothing('{secret}')").count(),
        lambda: rows.where(f"n = toInt64('{secret}')").count(),
        lambda: rows.order_by(secret).count(),
        lambda: create_object_from_value([1], name=f"{secret} is no name"),
    ):
        try:
            await attempt()
        except Exception as error:
            print(type(error).__name__, error)
    return len(secret)


async def return_view(secret: str) -> Any:
    """The reference of a View holds its condition."""
    from aaiclick.data import col, create_object_from_value  # here: only these bodies need it

    return (await create_object_from_value({"login": ["nobody"]})).where(col("login") == secret)


async def fail_in_data(secret: str) -> Any:
    """ClickHouse quotes what it refuses."""
    from aaiclick.data import create_object_from_value  # here: only these bodies need it

    rows = await create_object_from_value({"login": ["nobody"]})
    return await rows.where(f"nothing('{'long ' * 500}', '{secret}', login)").count()
