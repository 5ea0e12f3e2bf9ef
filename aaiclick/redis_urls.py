"""Addresses of Redis: one server, or Sentinels that know where a service's server is now."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from aaiclick.errors import ConfigError
from aaiclick.urls import did_you_mean, mask_url, shown

EXAMPLES = "redis://:password@host:6379/0, redis+sentinel://host-a:26379,host-b:26379/service"
SCHEMES = ("redis", "rediss", "redis+sentinel", "rediss+sentinel")
"""With `rediss`, connections are encrypted by TLS."""

PORT, SENTINEL_PORT = 6379, 26379
DATABASES_MAX = 10_000

TLS_OPTIONS = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})

_ADDRESS = re.compile(
    r"(?:(?P<user>[^:@/?]*)(?::(?P<password>[^@]*))?@)?(?P<hosts>[^/?@]*)(?:/(?P<path>[^?]*))?(?:\?(?P<query>.*))?"
)
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where a Redis is, and how to log in."""

    hosts: tuple[tuple[str, int], ...]
    """The server; or the Sentinels, if there is a service."""
    service: str
    """The name that the Sentinels have for the server and its replicas; empty without Sentinels."""
    database: int
    tls: bool
    user: str = field(repr=False)
    password: str = field(repr=False)
    options: dict[str, str] = field(repr=False)


def read_redis_url(setting: str, text: str) -> str:
    """Return the address as it is; raise ConfigError, which names the setting, if it cannot be used."""
    parse_redis_url(text, setting)
    return text


def parse_redis_url(url: str, setting: str = "AAICLICK_REDIS_URL") -> RedisAddress:
    """Return the parts of an address; raise ConfigError if it cannot be used."""
    scheme, mark, rest = url.partition("://")
    scheme = scheme.lower()
    if not mark or scheme not in SCHEMES:
        hint = did_you_mean(scheme, SCHEMES) or f"Write for example {EXAMPLES}."
        raise _refused(setting, url, f"it begins with none of {', '.join(each + '://' for each in SCHEMES)}", hint)
    parts = _ADDRESS.fullmatch(rest)
    if parts is None:
        hint = "Write special characters of the password as %XX (@ is %40, / is %2F)."
        raise _refused(setting, url, "its host cannot be read", hint)
    behind_sentinels = scheme.endswith("+sentinel")
    service, _, database = (parts["path"] or "").rpartition("/") if behind_sentinels else ("", "", parts["path"] or "")
    if behind_sentinels and not service:  # .../service, without a database
        service, database = database, ""
    _check_path(setting, url, service, database, behind_sentinels=behind_sentinels)
    return RedisAddress(
        hosts=_hosts(setting, url, parts["hosts"], several=behind_sentinels),
        service=unquote(service),
        database=int(database or 0),
        tls=scheme.startswith("rediss"),
        user=unquote(parts["user"] or ""),
        password=unquote(parts["password"] or ""),
        options=_options(setting, url, parts["query"] or "", behind_sentinels=behind_sentinels),
    )


def _hosts(setting: str, url: str, text: str, *, several: bool) -> tuple[tuple[str, int], ...]:
    names = text.split(",")
    if len(names) > 1 and not several:
        raise _refused(setting, url, "only redis+sentinel:// takes several hosts", f"Write for example {EXAMPLES}.")
    found = []
    for each in names:
        host = _HOST.fullmatch(each)
        port = int((host and host["port"]) or (SENTINEL_PORT if several else PORT))
        if host is None or not 1 <= port <= 65535:
            rule = "each host is a name or an address, with a port from 1 to 65535 or without"
            raise _refused(setting, url, rule, f"Write for example {EXAMPLES}.")
        found.append((host["name"].strip("[]"), port))
    return tuple(found)


def _check_path(setting: str, url: str, service: str, database: str, *, behind_sentinels: bool) -> None:
    if behind_sentinels and not re.fullmatch(r"[^/\s]+", unquote(service)):
        rule, hint = "it does not name the Sentinels' service", "Add its name after the hosts: /service or /service/0."
        raise _refused(setting, url, rule, hint)
    if database and not (re.fullmatch("[0-9]{1,5}", database) and int(database) < DATABASES_MAX):
        rule = "the database of a Redis is a number"
        raise _refused(setting, url, rule, f"Write for example {EXAMPLES}.")


def _options(setting: str, url: str, query: str, *, behind_sentinels: bool) -> dict[str, str]:
    known = TLS_OPTIONS | (SENTINEL_OPTIONS if behind_sentinels else frozenset())
    found = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(found.keys() - known):
        rule = f"its option {shown(unknown[0])} is not supported"
        raise _refused(setting, url, rule, f"Supported are {', '.join(sorted(known))}.")
    return found


def _refused(setting: str, text: str, rule: str, hint: str) -> ConfigError:
    return ConfigError(setting=setting, value=shown(mask_url(text)), rule=rule, hint=hint)
