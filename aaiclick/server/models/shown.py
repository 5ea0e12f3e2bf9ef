"""How things are shown. Ids are strings: programs that read numbers as doubles would change their last digits."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from aaiclick.orchestration.rules.entrypoints import shown

Id = Annotated[str, Field(pattern="^[0-9]{1,19}$", examples=["380467616543174656"])]


class Shown(BaseModel):
    """Made from what the front door gives, by the names of its fields; ids become strings."""

    @classmethod
    def of(cls, thing: Any) -> Self:
        """What is shown of it."""
        return cls(**{name: plain(name, getattr(thing, name)) for name in cls.model_fields})


def plain(name: str, value: Any) -> Any:
    """A fact as JSON has it."""
    if isinstance(value, int) and (name == "id" or name.endswith("_id")):
        return str(value)
    if name == "entrypoint":
        return shown(value)
    return str(value) if isinstance(value, str) else value  # a status is a kind of str
