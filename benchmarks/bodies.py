"""Bodies for tasks that benchmarks submit."""

import time


def noop(**_: object) -> None:
    return None


async def nothing(**_: object) -> None:
    return None


async def tell_time() -> float:
    return time.time()


def sleep(seconds: float) -> None:
    time.sleep(seconds)
