"""Database URLs: checks, completion with the driver and an absolute path, and masking of passwords."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from urllib.parse import quote, unquote

from aaiclick.errors import ConfigError

SQL_DRIVERS = {
    "sqlite": "aiosqlite",
    "postgresql": "asyncpg",
    "postgres": "asyncpg",
    "mariadb": "asyncmy",
    "mysql": "asyncmy",
}
"""The accepted schemes of the state's URL, each with its asynchronous driver."""

SQL_EXAMPLES = "sqlite+aiosqlite:///path/to/file.db, postgresql+asyncpg://user:password@host:5432/database"
CH_EXAMPLES = "chdb://path/to/directory, clickhouse://user:password@host:8123/database"

SHOWN_MAX = 120
WORD_MAX, WORDS_MAX = 60, 2_000
"""Limits of `did_you_mean`, whose time grows with their product: characters of the word, and known words compared."""

_SERVER = re.compile(
    r"""(?: (?P<user> [^:@/?]*) (?: : (?P<password> [^@]*) )? @ )?
        (?P<host> \[ [0-9A-Fa-f:.%]+ \] | [A-Za-z0-9._-]* )
        (?: : (?P<port> [^/?@]*) )?
        (?: / (?P<database> [^?]*) )?
        (?: \? .* )?""",
    re.VERBOSE | re.ASCII,
)
_QUERY = re.compile(r"\?[^?@/=]+=[^?]*$")
_PARAMETER = re.compile(r"([?&;])([^=&;]*)=([^&;]*)")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|credential|api_?key", re.IGNORECASE)

Place = Callable[[str], Path]
"""Turns a path as a person writes it into an absolute one."""


def mask_url(url: str) -> str:
    """Return the URL with its password replaced by `***`.

    Malformed URLs are masked too, rather too much than too little.
    """
    query = _QUERY.search(url)
    head, tail = (url[: query.start()], query[0]) if query else (url, "")
    start = head.find("://") + 3 if "://" in head else 0
    colon, at = head.find(":", start), head.rfind("@")
    if 0 <= colon < at:
        head = f"{head[: colon + 1]}***{head[at:]}"
    elif colon >= 0 and "@" in tail:  # the query may be a part of the password: mask it all
        head, tail = f"{head[: colon + 1]}***", ""
    return head + _PARAMETER.sub(_masked_parameter, tail)


def _masked_parameter(found: re.Match[str]) -> str:
    mark, name, value = found.groups()
    return f"{mark}{name}={'***' if _SECRET_NAME.search(unquote(name)) else value}"


def shown(text: str) -> str:
    """Return the text safe to print: control characters escaped, cut after SHOWN_MAX characters."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: SHOWN_MAX + 1])
    return plain if len(plain) <= SHOWN_MAX else f"{plain[:SHOWN_MAX]}…"


def did_you_mean(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    """Return a sentence that names the nearest known word, or an empty text."""
    near = difflib.get_close_matches(word[:WORD_MAX], list(islice(known, WORDS_MAX)), n=1)
    return f"Did you mean {prefix}{near[0]}?" if near else ""


def read_sql_url(setting: str, text: str, place: Place) -> str:
    """Return the state's URL with its asynchronous driver, and an absolute path for SQLite.

    Raise ConfigError, which names the setting, if the URL cannot be used.
    """
    scheme, rest = _split(setting, text, SQL_EXAMPLES)
    kind, _, driver = scheme.partition("+")
    if kind not in SQL_DRIVERS:
        known = ", ".join(SQL_DRIVERS)
        hint = did_you_mean(kind, SQL_DRIVERS) or f"Write for example {SQL_EXAMPLES}."
        raise _refused(setting, text, f"it begins with none of {known}", hint)
    if driver not in ("", SQL_DRIVERS[kind]):
        accepted = ", ".join(f"{known}+{driver}" for known, driver in SQL_DRIVERS.items())
        raise _refused(setting, text, f"the driver {shown(driver)} is not supported", f"Accepted are {accepted}.")
    if kind == "sqlite":
        return _sqlite(setting, text, rest, place)
    _check_server(setting, text, rest, SQL_EXAMPLES)
    return f"{'postgresql' if kind == 'postgres' else kind}+{SQL_DRIVERS[kind]}://{rest}"


def read_ch_url(setting: str, text: str, place: Place) -> str:
    """Return the data's URL, with an absolute path for chdb; raise ConfigError if it cannot be used."""
    scheme, rest = _split(setting, text, CH_EXAMPLES)
    if scheme == "clickhouse":
        for each in _single(rest):
            _check_server(setting, text, each, CH_EXAMPLES)
        return f"clickhouse://{rest}"
    if scheme != "chdb":
        hint = did_you_mean(scheme, ("chdb", "clickhouse")) or f"Write for example {CH_EXAMPLES}."
        raise _refused(setting, text, "it begins with neither chdb nor clickhouse", hint)
    if not rest.strip("/"):
        raise _refused(setting, text, "it does not name a directory", "Write chdb://path/to/directory.")
    if rest.startswith(":memory:"):
        raise _refused(
            setting, text, "data in memory would be lost with its process", "Write chdb://path/to/directory."
        )
    return f"chdb://{place(rest)}"


def read_cluster(setting: str, text: str, ch_url: str) -> str:
    """Return the name of a ClickHouse cluster; raise ConfigError if it is malformed or the data is in chdb."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", text):
        hint = "Unset it if there is only one server, or none."
        raise _refused(setting, text, "a cluster's name may have letters, digits, _ . and -", hint)
    if not ch_url.startswith("clickhouse://"):
        rule, hint = "the embedded engine is no cluster", "Name a server: AAICLICK_CH_URL=clickhouse://…, or unset it."
        raise _refused(setting, text, rule, hint)
    return text


def _single(rest: str) -> list[str]:
    """Split an address with several hosts, separated by commas, into one address for each."""
    login, at, there = rest.rpartition("@")
    hosts, slash, tail = there.partition("/")
    return [f"{login}{at}{host}{slash}{tail}" for host in hosts.split(",")]


def sqlite_url(file: Path) -> str:
    """Return the SQLAlchemy URL of a SQLite file."""
    return f"sqlite+aiosqlite:///{quote(str(file), safe='/ ~@:+,=()')}"


def sqlite_file(url: str) -> Path | None:
    """Return the file of a URL that `read_sql_url` returned, or None if it is a server's."""
    if not url.startswith("sqlite"):
        return None
    return Path(unquote(url.partition(":///")[2].partition("?")[0]))


def _split(setting: str, text: str, examples: str) -> tuple[str, str]:
    """Return the scheme in lower case, and the text after `://`."""
    if not text:
        raise _refused(setting, text, "it is empty", f"Unset it, or write for example {examples}.")
    scheme, mark, rest = text.partition("://")
    if not mark:
        raise _refused(setting, text, "it is not an address with ://", f"Write for example {examples}.")
    return scheme.lower(), rest


def _sqlite(setting: str, text: str, rest: str, place: Place) -> str:
    path, mark, query = rest.partition("?")
    if ":memory:" in path or "mode=memory" in query or rest == "":
        rule = "a database in memory cannot be shared between processes"
        raise _refused(setting, text, rule, "Name a file: sqlite+aiosqlite:///path/to/file.db.")
    if not path.startswith("/") or path.startswith("/file:"):
        rule = "a SQLite file has no host: three slashes, then its path"
        raise _refused(setting, text, rule, "Write sqlite+aiosqlite:///path/to/file.db.")
    if path.endswith("/"):
        raise _refused(setting, text, "it does not name a file", "Write sqlite+aiosqlite:///path/to/file.db.")
    return sqlite_url(place(unquote(path[1:]))) + mark + query


def _check_server(setting: str, text: str, rest: str, examples: str) -> None:
    """Raise ConfigError if `rest` is not [user[:password]@][host][:port]/database[?options]."""
    parts = _SERVER.fullmatch(rest)
    if parts is None:
        rule = "its host cannot be read"
        hint = "Write special characters of the password as %XX (@ is %40, / is %2F)."
        raise _refused(setting, text, rule, hint)
    if not (parts["host"] or parts["database"]):
        raise _refused(setting, text, "it names neither a host nor a database", f"Write for example {examples}.")
    port = parts["port"]
    if port is not None and not (re.fullmatch("[0-9]{1,5}", port) and 1 <= int(port) <= 65535):
        raise _refused(setting, text, "its port is not a number from 1 to 65535", f"Write for example {examples}.")
    if not parts["database"]:
        raise _refused(setting, text, "it does not name a database", "Add /name after the host.")
    if "/" in parts["database"]:
        raise _refused(setting, text, "its database has a slash in its name", "Write one name after the host.")


def _refused(setting: str, text: str, rule: str, hint: str) -> ConfigError:
    return ConfigError(setting=setting, value=shown(mask_url(text)), rule=rule, hint=hint)
