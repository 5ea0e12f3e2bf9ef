"""A workflow that fails because of its data, for whoever finds out why."""

from __future__ import annotations

from typing import Any

from aaiclick.data import create_object_from_value, open_object
from aaiclick.orchestration import job, task


@task
async def load_orders() -> int:
    amounts = [10.0, 25.5, 0.0, -3.25, 40.0]
    orders = await create_object_from_value({"number": [1, 2, 3, 4, 5], "amount": amounts}, name="orders")
    await orders.where(orders["amount"] != 0).materialize("paid_orders")
    return len(amounts)


@task
async def check_orders(count: int) -> float:
    print(f"checking what is left of {count} orders")
    paid = await open_object("paid_orders")
    lowest = float(await paid["amount"].min().data())
    if lowest < 0:
        raise ValueError(f"there is an order of {lowest}")
    return float(await paid["amount"].sum().data())


@task
def report(total: float) -> str:
    return f"sold for {total}"


@job
def daily_report() -> Any:
    return report(check_orders(load_orders()))
