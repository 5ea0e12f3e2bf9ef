"""The schema that tests run on, made the way users make it."""

from aaiclick.orchestration.store.schema import upgrade


async def migrate(url: str) -> None:
    """Bring the empty database at `url` to the newest schema."""
    await upgrade(url)
