"""The error message for numbers beyond the range of their type, and patterns that find ClickHouse's own errors."""

from __future__ import annotations

import re

BEYOND = "{} is beyond the range of its type. Cast to a wider type before, or use wrapping()"
TOLD = {"plus": "a sum", "minus": "a difference", "multiply": "a product", "sum": "a total"}
"""The name of the result of each ClickHouse function, for the message."""

CHECKED = re.compile(
    r"(?:cannot be safely converted|Decimal math overflow).{0,400}?"
    r"FUNCTION (?:accurateCast\((?:ifNull\()?)?(plus|minus|multiply|sum)(?:If)?\(",
    re.DOTALL,
)
"""Matches ClickHouse's error for a failed checked operation, and captures the function."""

NARROWED = re.compile(
    r"(?:Value in column U?Int(?:16|32|64|128|256) cannot be safely converted into type U?Int).*?"
    r"FUNCTION (?:if\((?:or\()?(?:isNull|greaterOrEquals\(count)\(|accurateCast\((?:roundBankers|arraySum|if)\()",
    re.DOTALL,
)
"""Matches ClickHouse's error for a failed check where the error does not name the operation."""
