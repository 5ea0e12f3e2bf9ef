"""The functions that a read-only query must not call, because they reach outside ClickHouse's own tables.

`readonly = 1` prevents writes and most table functions, but not `file('/etc/passwd')`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aaiclick.errors import InputError

DICTIONARIES = ("dictGet*", "dictHas", "dictIsIn", "region*")
"""Functions that read dictionaries, whose sources may be files, addresses and programs."""

NETWORK = ("ai*", "hasColumnInTable", "zookeeperSessionUptime", "generateSerialID")

FILES = ("file", "naiveBayesClassifier*", "catboostEvaluate", "lemmatize", "synonyms", "showCertificate", "addressTo*")

MACHINE = (
    *("hostName", "FQDN", "fullHostName", "filesystem*", "getMacro", "getServerPort", "getServerSetting", "tcpPort"),
    *("getOSKernelVersion", "serverUUID", "buildId", "uptime", "globalVariable", "logTrace", "tid", "demangle"),
    *("getClientHTTPHeader", "currentRequestURL", "currentHandler", "sleep", "sleepEachRow"),
)
"""Functions that reveal the machine, the server's settings or other clients, write into its log, or only take time."""

FUNCTIONS = (*FILES, *NETWORK, *DICTIONARIES, *MACHINE)
"""Functions that are refused, in upper or lower case; a star stands for any ending."""

OPEN_TABLES = {
    *("numbers", "numbers_mt", "zeros", "zeros_mt", "primes", "generateseries", "generate_series", "generaterandom"),
    *("values", "sqlstandardvalues", "null", "view", "viewifpermitted", "merge", "fuzzjson"),
}
"""Table functions that only generate rows, or read tables that the query could read anyway."""

CLOSED_TABLES = frozenset(
    [
        "arrowflight",
        "arrowstream",
        "azureblobstorage",
        "azurequeue",
        "bigquery",
        "cluster",
        "clusterallreplicas",
        "cosn",
        "deltalake",
        "dictionary",
        "eval",
        "executable",
        "file",
        "filecluster",
        "filesystem",
        "fuzzquery",
        "gcs",
        "hdfs",
        "hdfscluster",
        "hive",
        "hudi",
        "hudicluster",
        "iceberg",
        "input",
        "jdbc",
        "kafka",
        "loop",
        "mongodb",
        "mysql",
        "nats",
        "odbc",
        "oss",
        "paimon",
        "postgresql",
        "prometheusquery",
        "prometheusqueryrange",
        "python",
        "rabbitmq",
        "redis",
        "remote",
        "remotesecure",
        "s3",
        "s3cluster",
        "s3queue",
        "sqlite",
        "url",
        "urlcluster",
        "viewexplain",
        "ytsaurus",
    ]
)
"""Table functions that are refused; so are those whose names begin with one of FAMILIES. `format` is left to
`readonly`, since a harmless function has the same name."""

FAMILIES = ("azureblobstorage", "deltalake", "iceberg", "paimon", "mergetree", "timeseries")

STRUCTURED = {"format", "values", "sqlstandardvalues", "generaterandom", "null", "input", "fuzzjson"}
"""Table functions whose columns are described in a text, where DEFAULT and ALIAS may call any function."""

FILTERS = {"additional_table_filters", "additional_result_filter"}
"""Settings whose values are expressions in a text."""

_DECLARES = re.compile(r"\b(?:DEFAULT|MATERIALIZED|ALIAS|EPHEMERAL)\b", re.IGNORECASE)
_PATTERN = re.compile(r"'.*[^\w'].*'", re.DOTALL)
_NUMBER = re.compile(r"[-+.\d]*")
_TOKEN = re.compile(
    r"""'(?: [^'\\] | \\. | '' )*'
      | ` (?P<quoted> (?: [^`\\] | \\. | `` )* ) ` | " (?P<double> (?: [^"\\] | \\. | "" )* ) "
      | (?P<word> [^\W\d]\w* ) | (?P<number> \d\w* ) | (?P<mark> \S )""",
    re.VERBOSE | re.DOTALL,
)
_FUNCTION = re.compile(
    "|".join(re.escape(name.rstrip("*")) + (r"\w*" if name.endswith("*") else "") for name in FUNCTIONS), re.IGNORECASE
)


def is_closed_function(name: str) -> bool:
    """Return whether a function is refused in read-only queries."""
    return _FUNCTION.fullmatch(name) is not None


def is_closed_table(name: str) -> bool:
    """Return whether a table function is refused in read-only queries."""
    name = name.lower()
    return name in CLOSED_TABLES or name.startswith(FAMILIES)


def check_calls(query: str) -> None:
    """Raise InputError if a query, as formatted by ClickHouse, names a closed function or hides calls in a text.

    A function may be passed to another function, or to APPLY, by its bare name. So a column with the name of a closed
    function must be written with its table. A name that is called is refused in every spelling.
    """
    before, words = "", list(_TOKEN.finditer(query))
    tokens = [each[0] for each in words]
    for at, (found, after) in enumerate(zip(words, [*tokens[1:], ""], strict=True)):
        name = found["word"] or found["quoted"] or found["double"]
        if name and hides_calls(name, tokens, at):
            rule = f"{name} takes an expression in a text, which a query that only reads may not contain"
            raise InputError(field="SQL", value=name, rule=rule, hint="")
        if name and _is_refused(name, is_called=after == "(", is_part=before == "."):
            rule = f"{name} reads files, addresses or the machine, which a query on Objects may not"
            hint = "" if after == "(" else f"If it is a column, write it with its table: t.{name}."
            raise InputError(field="SQL", value=name, rule=rule, hint=hint)
        before = found[0]


def _is_refused(name: str, *, is_called: bool, is_part: bool) -> bool:
    if is_called:
        return is_closed_function(name) or is_closed_table(name)
    return is_closed_function(name) and not is_part


def hides_calls(name: str, tokens: Sequence[str], at: int) -> bool:
    """Return whether the name at the position `at` may call functions that are written inside a text."""
    name = name.lower()
    if name not in STRUCTURED or tokens[at + 1 : at + 2] != ["("]:
        return name in FILTERS
    arguments = _arguments(tokens, at + 1)
    # `format` is also a function, whose first argument is a pattern; a format's name has only word characters
    if name == "format":
        if len(arguments) < 3 or (len(arguments[0]) == 1 and _PATTERN.fullmatch(arguments[0][0])):
            return False
        return not _is_plain(arguments[1])
    if name in ("values", "sqlstandardvalues") and arguments[0][:1] in (["("], ["["]):
        return False
    return not (_is_plain(arguments[0]) or _NUMBER.fullmatch("".join(arguments[0])))


def _is_plain(argument: list[str]) -> bool:
    """Return whether an argument is one text that declares only types."""
    return len(argument) == 1 and argument[0].startswith("'") and not _DECLARES.search(argument[0])


def _arguments(tokens: Sequence[str], at: int) -> list[list[str]]:
    """Return the arguments in the parentheses that open at this position, each as a list of tokens."""
    found: list[list[str]] = [[]]
    depth = 0
    for mark in tokens[at:]:
        depth += (mark in "([{") - (mark in ")]}")
        if depth == 0:
            break
        if mark == "," and depth == 1:
            found.append([])
        elif depth > 1 or mark not in "([{":
            found[-1].append(mark)
    return found
