"""A graph that grows until there is nothing left to find: a crawl of linked pages, a task for each page.

    python examples/crawl.py

The pages are made up, so that nothing is asked of the network. Each wave looks at the pages that the last one found and
that were not seen before; who found what is known from what the tasks return.
"""

from __future__ import annotations

import sys
from typing import Any

from aaiclick.orchestration import TaskResult, job, job_test, task

PAGES = {
    "/": ["/news", "/about", "/shop"],
    "/news": ["/", "/news/1", "/news/2"],
    "/news/1": ["/news", "/shop/apples"],
    "/news/2": ["/news", "/news/1"],
    "/about": ["/"],
    "/shop": ["/shop/apples", "/shop/pears"],
    "/shop/apples": ["/shop", "/shop/pears"],
    "/shop/pears": ["/shop", "/orchard"],
    "/orchard": [],
}


@task(max_retries=2)
def fetch(page: str) -> dict[str, Any]:
    """The links of a page."""
    return {"page": page, "links": PAGES[page]}


@task
def follow(fetched: list[dict[str, Any]], seen: list[str], depth: int) -> Any:
    """Fetch what was found and not seen before, and follow that; or say what was seen."""
    found = sorted({link for page in fetched for link in page["links"]} - set(seen))
    if not found:
        return TaskResult(data={"pages": sorted(seen), "depth": depth})
    return follow([fetch(page) for page in found], [*seen, *found], depth + 1)


@job("crawl")
def crawl(start: str) -> Any:
    return follow([fetch(start)], [start], 0)


if __name__ == "__main__":
    done = job_test(crawl, start="/")
    if done.status != "completed":
        sys.exit(str(done.error))
    print(f"{len(done.result['pages'])} pages, {done.result['depth']} clicks from the first, {done.total_tasks} tasks")
