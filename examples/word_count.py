"""Word count over a directory of files: a task for each file that is found, and one that joins what they counted.

    python examples/word_count.py [DIRECTORY]

Without a directory it counts the words of some files that it makes.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from aaiclick.data import Object, concat, create_object_from_value
from aaiclick.orchestration import ajob_test, get_job_result, job, task

TEXTS = {
    "hare.txt": "the hare was quick and the hare was proud",
    "tortoise.txt": "the tortoise was slow and the tortoise was steady",
    "race.txt": "slow and steady won the race",
}
WORD = re.compile(r"[a-z]+")


@task
def find(directory: str) -> list:  # type: ignore[type-arg]
    """One task for each file: how many there are is known only now."""
    return [count(str(path)) for path in sorted(Path(directory).glob("*.txt"))]


@task
async def count(path: str) -> Object:
    """The words of a file, as a table."""
    text = await asyncio.to_thread(Path(path).read_text, encoding="utf-8")
    return await create_object_from_value({"word": WORD.findall(text.lower())}, fields={"word": "String"})


@task
async def total(counted: list[Object]) -> list[dict[str, object]]:
    """How often each word was found; ClickHouse counts."""
    words = counted[0] if len(counted) == 1 else concat(*counted)
    found = words.group_by("word").count("times").order_by("times", "word", descending=[True, False])
    top: list[dict[str, object]] = await found.limit(5).data(orient="records")
    return top


@job("word count")
def word_count(directory: str) -> object:
    return total(find(directory))


async def main(directory: str) -> int:
    done = await ajob_test(word_count, directory)
    if done.status != "completed":
        print(done.error, file=sys.stderr)
        return 1
    for row in await get_job_result(done):
        print(f"{row['times']:>4} {row['word']}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(asyncio.run(main(sys.argv[1])))
    with tempfile.TemporaryDirectory() as place:
        for name, text in TEXTS.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        sys.exit(asyncio.run(main(place)))
