"""The words for a number that its type does not hold."""

from __future__ import annotations

import re

BEYOND = "{} is beyond the range of its type. Cast to a wider type before, or use wrapping()"
TOLD = {"plus": "a sum", "minus": "a difference", "multiply": "a product", "sum": "a total"}
"""What an operation of ClickHouse gives."""

CHECKED = re.compile(
    r"(?:cannot be safely converted|Decimal math overflow).{0,400}?"
    r"FUNCTION (?:accurateCast\((?:ifNull\()?)?(plus|minus|multiply|sum)(?:If)?\(",
    re.DOTALL,
)
"""What ClickHouse says where a checked operation was refused."""

NARROWED = re.compile(
    r"(?:Value in column U?Int(?:16|32|64|128|256) cannot be safely converted into type U?Int).*?"
    r"FUNCTION (?:if\((?:or\()?(?:isNull|greaterOrEquals\(count)\(|accurateCast\((?:roundBankers|arraySum|if)\()",
    re.DOTALL,
)
"""The same, where it does not say which operation it was."""
