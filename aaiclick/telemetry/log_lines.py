"""The format of log lines: text for people or JSON for programs, with fields such as job and task.

As a library, aaiclick logs to the logger `aaiclick` and configures nothing. Only its own processes, which a command
starts, write lines to stderr.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

from aaiclick.config import settings
from aaiclick.telemetry.fields import EXTRA, bound_fields
from aaiclick.telemetry.masks import mask_text, remember_passwords


def log_to_stderr(*, verbose: bool = False) -> None:
    """Write this process's log to stderr: warnings of other libraries, and aaiclick's lines from the set level.

    `verbose` adds the lines of level INFO.
    """
    chosen = settings()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(line_format("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    level = logging.getLevelNamesMapping()[chosen.log_level]
    logging.getLogger("aaiclick").setLevel(min(level, logging.INFO) if verbose else level)
    remember_passwords((chosen.sql_url, chosen.ch_url, chosen.node_ch_url))


def line_format(text: str, *, fields: bool = True) -> logging.Formatter:
    """Return the formatter that AAICLICK_LOG_FORMAT selects: JSON, or `text` as the format, followed by the fields."""
    return JsonLines() if settings().log_format == "json" else TextLines(text, fields)


class TextLines(logging.Formatter):
    """Formats a line as text, followed as `name=value` by the fields whose values the message does not contain."""

    def __init__(self, text: str, fields: bool = True) -> None:
        super().__init__(text)
        self._fields = fields

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format the line itself, without the traceback."""
        line = super().formatMessage(record)
        named = fields_of(record) if self._fields else {}
        said = [f"{name}={value}" for name, value in named.items() if not _is_said(value, record.getMessage())]
        return " ".join([line, *said])

    def format(self, record: logging.LogRecord) -> str:
        """Format the line and its traceback, with secrets masked."""
        return mask_text(super().format(record))


def _is_said(value: str, message: str) -> bool:
    """Return whether a message contains the value as a word; a short number there may count something else."""
    return len(value) > 3 and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", message) is not None


class JsonLines(logging.Formatter):
    """Formats a line as one JSON object: time, level, logger, message, the fields, and the traceback as `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the line. Each text is masked before JSON escapes it."""
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
    """Return the fields of a record, masked: those bound where it is formatted, overridden by its own."""
    own = getattr(record, EXTRA, {})
    said = {name: str(value) for name, value in own.items() if value is not None}
    return {name: mask_text(value) for name, value in {**bound_fields(), **said}.items()}
