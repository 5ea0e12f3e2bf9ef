"""Log lines: text for people, or JSON for programs, with the fields of what they are about.

As a library, aaiclick logs to the logger `aaiclick` and configures nothing. Only its own processes, which a command
starts, write lines to stderr.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from aaiclick.config import settings
from aaiclick.telemetry.fields import EXTRA, bound_fields
from aaiclick.telemetry.masks import mask_text, remember_passwords


def log_to_stderr(*, verbose: bool = False) -> None:
    """Let this process write its log to stderr: other libraries' warnings, and ours from the level that is set."""
    chosen = settings()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(line_format("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    level = logging.getLevelNamesMapping()[chosen.log_level]
    logging.getLogger("aaiclick").setLevel(min(level, logging.INFO) if verbose else level)
    remember_passwords((chosen.sql_url, chosen.ch_url))


def line_format(text: str, *, fields: bool = True) -> logging.Formatter:
    """How AAICLICK_LOG_FORMAT wants lines; text looks as given, followed by its fields if wanted."""
    return JsonLines() if settings().log_format == "json" else TextLines(text, fields)


class TextLines(logging.Formatter):
    """A line as people read it, and those of its fields that it does not say in words, as `name=value`."""

    def __init__(self, text: str, fields: bool = True) -> None:
        super().__init__(text)
        self._fields = fields

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The first line; a traceback follows it."""
        line = super().formatMessage(record)
        named = fields_of(record) if self._fields else {}
        return " ".join([line, *(f"{name}={value}" for name, value in named.items() if value not in line)])

    def format(self, record: logging.LogRecord) -> str:
        """All of it, masked."""
        return mask_text(super().format(record))


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the fields, and the traceback as `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; each text is masked before it is escaped."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": mask_text(record.getMessage()),
            **fields_of(record),
        }
        error = self._error(record)
        if error:
            line["error"] = mask_text(error)
        return json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()

    def _error(self, record: logging.LogRecord) -> str:
        parts = [self.formatException(record.exc_info) if record.exc_info else record.exc_text or ""]
        if record.stack_info:
            parts.append(self.formatStack(record.stack_info))
        return "\n".join(part for part in parts if part)


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    """What the line is about: what it says itself, and what is bound where it was logged."""
    own = getattr(record, EXTRA, {})
    said = {name: str(value) for name, value in own.items() if value is not None}
    return {name: mask_text(value) for name, value in {**bound_fields(), **said}.items()}
