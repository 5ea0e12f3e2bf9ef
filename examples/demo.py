"""A small real workflow: monthly sales of three regions, from CSV files to one report.

    python examples/demo.py           runs it and exits with 0
    python examples/demo.py --fail    damages one file on the way, and exits with 1

The files are made in a directory that is thrown away. `scripts/demo` does the same with the state of aaiclick.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import random
import sys
import tempfile
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from aaiclick.data import Object, concat, create_object_from_file, raw
from aaiclick.orchestration import (
    Group,
    Job,
    RetryPolicy,
    Run,
    Task,
    get_groups_for_job,
    get_job_result,
    get_runs_for_task,
    get_tasks_for_job,
    job,
    job_test,
    print_job_stats,
    task,
)

CURRENCIES = {"north": "EUR", "east": "PLN", "west": "GBP"}
MONTHS = (date(2026, 1, 1), date(2026, 2, 1))
PRODUCTS = ("apples", "bread", "coffee", "dates")
RATES = {"EUR": Decimal("1"), "PLN": Decimal("0.2345"), "GBP": Decimal("1.1525")}

# ---------------------------------------------------------------- the tasks: plain functions, on values and on Objects


@task
def write_sales(folder: str, region: str, month: date, rows: int, damaged: bool) -> str:
    """Make a month of sales, the same in every run; some rows are bad, as in real files."""
    rng = random.Random(f"{region} {month}")
    path = Path(folder) / f"{region}-{month:%Y-%m}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        if damaged:
            file.write("this is not a table\n")
            return str(path)
        table = csv.writer(file)
        table.writerow(["day", "product", "amount"])
        for _ in range(rows):
            amount = "n/a" if rng.random() < 0.01 else f"{rng.randint(100, 99_999) / 100:.2f}"
            table.writerow([month.replace(day=rng.randint(1, 28)), rng.choice(PRODUCTS), amount])
    return str(path)


@task
def check(path: str) -> str:
    """Refuse a file that is not a table of sales."""
    with open(path, newline="", encoding="utf-8") as file:
        header = next(csv.reader(file), [])
    if header != ["day", "product", "amount"]:
        raise ValueError(f"{Path(path).name} has the columns {header}")
    return path


@task
async def parse(path: str) -> Object:
    """A month's rows, read by ClickHouse; an amount that is none stays as a hole, and is not hidden."""
    rows = await create_object_from_file(path)
    return await rows.with_columns(amount=raw("toDecimal64OrNull(amount, 2)"))


@task
async def aggregate(region: str, months: list[Object]) -> dict[str, Any]:
    """A region's months become one line of the report: a few numbers leave ClickHouse, the rows stay."""
    sales = concat(*months)
    totals = await sales.group_by("product").sum("amount").order_by("amount", descending=True).data()
    numbers = await sales.agg(rows="count", good=("amount", "count")).data()
    return {
        "region": region,
        "rows": numbers["good"],
        "bad": numbers["rows"] - numbers["good"],
        "amount": sum(totals["amount"]),
        "best": totals["product"][0],
    }


@task(max_retries=3, retry=RetryPolicy(delay_s=0.2, jitter=False))
def exchange_rates(folder: str, currencies: set[str]) -> dict[str, Decimal]:
    """Ask a service that is always busy when it is asked first."""
    visited = Path(folder) / "rates.visited"
    if not visited.exists():
        visited.touch()
        raise ConnectionError("the exchange is busy")
    return {currency: RATES[currency] for currency in currencies}


@task
def report(folder: str, regions: list[dict[str, Any]], rates: dict[str, Decimal]) -> list[str]:
    """The report, as a file and as lines."""
    lines = [f"{'region':<8}{'rows':>7}{'bad':>5}{'EUR':>16}  best product"]
    whole = Decimal(0)
    for line in regions:
        euros = line["amount"] * rates[CURRENCIES[line["region"]]]
        whole += euros
        lines.append(f"{line['region']:<8}{line['rows']:>7}{line['bad']:>5}{euros:>16,.2f}  {line['best']}")
    lines.append(f"{'all':<20}{whole:>16,.2f}")
    (Path(folder) / "report.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


# ---------------------------------------------------------------- the workflow: who waits for whom


@job("sales_report")
def sales_report(folder: str, rows: int, damaged: bool) -> list[str]:
    rates = exchange_rates(folder, set(CURRENCIES.values()))
    lines = []
    with Group("regions"):
        for region in CURRENCIES:
            with Group(region):
                months = [month_of(folder, region, month, rows, damaged) for month in MONTHS]
                lines.append(aggregate(region, months))
    return report(folder, lines, rates)


def month_of(folder: str, region: str, month: date, rows: int, damaged: bool) -> Object:
    """Three tasks in a row; each is named after its month."""
    bad = damaged and (region, month) == ("west", MONTHS[-1])
    written = write_sales.options(name=f"write {month:%Y-%m}")(folder, region, month, rows, bad)
    checked = check.options(name=f"check {month:%Y-%m}")(written)
    return parse.options(name=f"parse {month:%Y-%m}")(checked)


# ---------------------------------------------------------------- what happened


async def show(finished: Job) -> None:
    """Print the graph with what became of each task, the job in numbers, and its result."""
    tasks, groups = await get_tasks_for_job(finished.id), await get_groups_for_job(finished.id)
    history = {item.id: await get_runs_for_task(item.id) for item in tasks}
    print(f"{'task':<24}{'status':<18}{'attempts':>8}{'ms':>8}")
    show_members(None, "", tasks, groups, history)
    print()
    for item in tasks:
        for run in history[item.id]:
            if run.error:
                print(f"{item.name}, attempt {run.attempt + 1}: {run.error}")
    print()
    await print_job_stats(finished.id)
    if finished.status == "completed":
        print("", *await get_job_result(finished), sep="\n")


def show_members(
    group_id: int | None, indent: str, tasks: list[Task], groups: list[Group], history: dict[int, list[Run]]
) -> None:
    for group in groups:
        if group.parent_group_id == group_id:
            print(f"{indent}{group.name}/")
            show_members(group.id, indent + "  ", tasks, groups, history)
    for item in tasks:
        if item.group_id == group_id:
            runs = history[item.id]
            spent_ms = sum((run.ended_at - (run.started_at or run.ended_at)).total_seconds() for run in runs) * 1000
            print(f"{indent + item.name:<24}{item.status:<18}{len(runs):>8}{spent_ms:>8.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a small real workflow on this machine.")
    parser.add_argument("--rows", type=int, default=2_000, help="rows in each file (default: 2000)")
    parser.add_argument("--fail", action="store_true", help="damage one file, to see a job that fails")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aaiclick-demo-") as folder:
        finished = job_test(sales_report, folder=folder, rows=given.rows, damaged=given.fail)
        asyncio.run(show(finished))
    return 0 if finished.status == "completed" else 1


if __name__ == "__main__":
    sys.exit(main())
