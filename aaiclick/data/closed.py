"""What a query that only reads may not call: functions that look outside of ClickHouse's own tables.

`readonly = 1` keeps such a query from writing, and from most table functions, but not from `file('/etc/passwd')`.
"""

from __future__ import annotations

import re

from aaiclick.errors import InputError

DICTIONARIES = ("dictGet*", "dictHas", "dictIsIn", "region*")
"""Their sources may be files, addresses and programs."""

NETWORK = ("ai*", "hasColumnInTable", "zookeeperSessionUptime", "generateSerialID")

FILES = ("file", "naiveBayesClassifier*", "catboostEvaluate", "lemmatize", "synonyms", "showCertificate", "addressTo*")

MACHINE = (
    *("hostName", "FQDN", "fullHostName", "filesystem*", "getMacro", "getServerPort", "getServerSetting", "tcpPort"),
    *("getOSKernelVersion", "serverUUID", "buildId", "uptime", "globalVariable", "logTrace", "tid", "demangle"),
    *("getClientHTTPHeader", "currentRequestURL", "currentHandler", "sleep", "sleepEachRow"),
)
"""They tell of the machine, of the server's settings or of other clients; write into its log; or only take time."""

FUNCTIONS = (*FILES, *NETWORK, *DICTIONARIES, *MACHINE)
"""Functions that are refused, whatever their case; with a star, all that begin so."""

OPEN_TABLES = {
    *("numbers", "numbers_mt", "zeros", "zeros_mt", "primes", "generateseries", "generate_series", "generaterandom"),
    *("values", "sqlstandardvalues", "null", "view", "viewifpermitted", "merge", "fuzzjson"),
}
"""Table functions that only count, or read tables that could be read anyway."""

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
"""Table functions that are refused; so are those that begin as one of FAMILIES. `format` is left to `readonly`, since
there is a harmless function of that name."""

FAMILIES = ("azureblobstorage", "deltalake", "iceberg", "paimon", "mergetree", "timeseries")

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
    """Whether a function looks outside."""
    return _FUNCTION.fullmatch(name) is not None


def is_closed_table(name: str) -> bool:
    """Whether a table function looks outside."""
    name = name.lower()
    return name in CLOSED_TABLES or name.startswith(FAMILIES)


def check_calls(query: str) -> None:
    """Refuse a query, as ClickHouse's own formatter wrote it, that names what looks outside.

    A function may be handed to another, or to APPLY, by its bare name: so a column of such a name has to be written
    with its table. What is called is refused, however it is written.
    """
    before, words = "", list(_TOKEN.finditer(query))
    for found, after in zip(words, [*(each[0] for each in words[1:]), ""], strict=True):
        name = found["word"] or found["quoted"] or found["double"]
        if name and _is_refused(name, is_called=after == "(", is_part=before == "."):
            rule = f"{name} reads files, addresses or the machine, which a query that only reads may not"
            hint = "" if after == "(" else f"If it is a column, write it with its table: t.{name}."
            raise InputError(field="SQL", value=name, rule=rule, hint=hint)
        before = found[0]


def _is_refused(name: str, *, is_called: bool, is_part: bool) -> bool:
    if is_called:
        return is_closed_function(name) or is_closed_table(name)
    return is_closed_function(name) and not is_part
