"""Bodies for tasks that benchmarks submit."""


def noop(**_: object) -> None:
    return None
