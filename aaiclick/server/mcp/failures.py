"""What went wrong, as an agent is told it: a code, what it was, and what to do about it; never a stack."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import BaseModel, Field, ValidationError

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.rules.validation import escape_for_terminal, mask_secrets, shown
from aaiclick.server.mcp.bounds import READ_S_MAX, shortened
from aaiclick.server.problems import WrongField, status_of

WRONG_MAX = 20

TO_DO: dict[int, str] = {
    403: "Tell the person you work for: this needs a token with another role.",
    404: "Find it with the tools that list things; ids and names must be those of this server.",
    409: "Read its current state, and decide again.",
    413: "Pass less.",
    422: "Correct the arguments; the tool's schema describes them.",
    503: "Wait some seconds and try again; check_health tells more.",
}
"""By the status that REST answers with."""

FAULT = "Tell the person you work for; the server's log tells more. Trying again is unlikely to help."


class Failure(BaseModel):
    """What a call that failed is answered with."""

    code: str = Field(description="The kind of error, as in the reference of errors.")
    what: str = Field(description="What went wrong.")
    to_do: str = Field(description="What can be done about it.")
    errors: list[WrongField] | None = Field(default=None, description="Each argument that was not accepted.")


def failure_of(error: AaiclickError) -> Failure:
    """An error of the tree; a fault of ours tells nothing of its cause."""
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return fault()
    what, hint = str(error), str(error.facts.get("hint", ""))
    if hint:
        what = what.removesuffix(hint).strip()
    return Failure(code=type(error).__name__, what=_told(what), to_do=_told(hint) or TO_DO.get(status, FAULT))


def _told(text: str) -> str:
    return str(shortened(escape_for_terminal(mask_secrets(text)), 2_000, []))


def wrong_arguments(error: ValidationError) -> Failure:
    """Arguments that do not have the form that was asked for: all of them are listed."""
    found = [_wrong(each) for each in error.errors()[:WRONG_MAX]]
    words = "; ".join(f"{each.field}: {each.rule}" for each in found)
    return Failure(code="InputError", what=f"Not accepted: {words}", to_do=TO_DO[422], errors=found)


def _wrong(found: object) -> WrongField:
    assert isinstance(found, dict)
    field = escape_for_terminal(".".join(str(part) for part in found["loc"]))[:200] or "arguments"
    value = None if found["type"] == "missing" else shown(found.get("input"), field)
    return WrongField(field=field, rule=escape_for_terminal(str(found["msg"])), value=value)


def too_slow() -> Failure:
    """A tool that only reads took too long."""
    what = f"It took longer than {READ_S_MAX:g} s and was stopped; nothing was changed."
    return Failure(code="TooSlow", what=what, to_do="Request less, or try again later.")


def fault() -> Failure:
    """A fault of ours: what it was is in the log."""
    return Failure(code="Fault", what="A bug in aaiclick.", to_do=FAULT)
