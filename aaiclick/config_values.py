"""Reads the values of settings from text; raises ConfigError for those that are not accepted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

from aaiclick.config_docs import BY_NAME
from aaiclick.config_setting import Setting
from aaiclick.errors import ConfigError
from aaiclick.urls import mask_url, shown

PreservationMode = Literal["none", "full"]

LABEL_MAX = 200
"""Characters of a name of a machine, of a label or of a pool."""

BUCKET = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()/-]*)?"


def read_plain(name: str, value: str) -> str:
    """Return the value stripped; refuse characters that cannot be printed. A password is returned unchanged."""
    if name == "POSTGRES_PASSWORD":
        return value
    if not value.strip().isprintable():
        raise refused(BY_NAME[name], value, "it holds control characters or bytes that are not UTF-8")
    return value.strip()


def read_not_empty(setting: Setting, text: str) -> str:
    if not text:
        raise refused(setting, text, f"it is empty; it must be {setting.rule}")
    return text


def read_quoted(setting: Setting, text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise refused(setting, "***", "it holds bytes that are not UTF-8") from None


def read_host(setting: Setting, text: str) -> str:
    """Return the host as a URL writes it: an IPv6 address in brackets."""
    if re.fullmatch("[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*", text):
        return f"[{text}]"
    if not re.fullmatch("[A-Za-z0-9._-]+|/.*", text):
        raise refused(setting, text, f"it must be {setting.rule}")
    return text


def read_hosts(setting: Setting, text: str) -> tuple[str, ...]:
    names = listed(text)
    if not all(re.fullmatch(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?", name) for name in names):
        raise refused(setting, text, f"it must be {setting.rule}")
    return tuple(name.lower() for name in names)


def read_servers(setting: Setting, text: str) -> tuple[str, ...]:
    """Return the addresses of servers."""
    if not all(re.fullmatch(r"https?://[^/?#@\s,]+(/[^?#\s,]*)?", each) for each in listed(text)):
        raise refused(setting, text, f"it must be {setting.rule}")
    return listed(text)


def read_server(setting: Setting, text: str) -> str:
    """Return the address of one server."""
    found = read_servers(setting, text)
    if len(found) != 1:
        raise refused(setting, text, f"it must be {setting.rule}")
    return found[0]


def read_redis(setting: Setting, text: str) -> str:
    """Return the address of a Redis."""
    from aaiclick.redis_urls import read_redis_url  # here: rarely needed

    return read_redis_url(setting.name, text)


def read_redis_prefix(setting: Setting, text: str) -> str:
    """Return the beginning of the names of our streams."""
    if not re.fullmatch(r"[A-Za-z0-9_.:{}-]{1,100}", text):
        raise refused(setting, text, f"it must be {setting.rule}")
    return text


def read_prefixes(setting: Setting, text: str) -> tuple[str, ...]:
    """Return dotted names, and names of executors, which end with a colon."""
    names = listed(text)
    if not all(part.isidentifier() for name in names for part in name.removesuffix(":").split(".")):
        raise refused(setting, text, f"it must be {setting.rule}")
    return names


def read_identifiers(setting: Setting, text: str) -> tuple[str, ...]:
    names = listed(text)
    if not all(name.isidentifier() for name in names):
        raise refused(setting, text, f"it must be {setting.rule}")
    return names


def read_amounts(setting: Setting, text: str) -> tuple[tuple[str, float], ...]:
    """Return amounts by name."""
    pairs = [
        re.fullmatch(r"([A-Za-z0-9_.:@+-]{1,200}) *= *([0-9]{1,12}(?:\.[0-9]{1,3})?)", pair) for pair in listed(text)
    ]
    found = [(pair[1], float(pair[2])) for pair in pairs if pair is not None]
    if not found or len(found) < len(pairs) or len({name for name, _ in found}) < len(found):
        raise refused(setting, text, f"it must be {setting.rule}")
    return tuple(found)


def read_label(setting: Setting, text: str) -> str | None:
    """Return a name; None for an empty text, which is that nothing is set."""
    if len(text) > LABEL_MAX:
        raise refused(setting, text, f"it has more than {LABEL_MAX} characters")
    return text or None


def read_labels(setting: Setting, text: str) -> tuple[str, ...]:
    return tuple(name for each in listed(text) if (name := read_label(setting, each)))


def read_pairs(setting: Setting, text: str) -> tuple[str, ...]:
    """Return the texts name=value."""
    pairs = listed(text)
    if not all(re.fullmatch(r"[^=]*[^=\s][^=]*=.*", pair) for pair in pairs):
        raise refused(setting, text, f"it must be {setting.rule}")
    return pairs


def read_addresses(setting: Setting, text: str) -> tuple[str, ...]:
    """Return hosts and networks, in lower case."""
    import ipaddress  # rarely needed

    names = tuple(name.lower() for name in listed(text))
    for name in names:
        try:
            if "/" in name or ":" in name:
                ipaddress.ip_network(name)
        except ValueError:
            raise refused(setting, text, f"it must be {setting.rule}") from None
        if not re.fullmatch("[a-z0-9._:/-]+", name):
            raise refused(setting, text, f"it must be {setting.rule}")
    return names


def read_web_address(setting: Setting, text: str) -> str:
    """Return an address without the slash at its end."""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        fits = False
    if not fits:
        raise refused(setting, text, f"it must be {setting.rule}")
    return text.rstrip("/")


def listed(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def read_number(setting: Setting, text: str) -> float:
    pattern = "[0-9]{1,15}" if setting.whole else "[0-9]{1,15}(?:[.][0-9]{1,9})?"
    low, high = setting.low or 0, setting.high or 0
    if not re.fullmatch(pattern, text) or not low <= float(text) <= high:
        raise refused(setting, text, f"it must be {setting.rule}")
    return float(text)


def read_one_of(*choices: str) -> Callable[[Setting, str], str]:
    def read(setting: Setting, text: str) -> str:
        if text.lower() not in choices:
            raise refused(setting, text, f"it must be {setting.rule}")
        return text.lower()

    return read


def read_preservation_mode(setting: Setting, text: str) -> PreservationMode:
    if text.lower() not in ("none", "full"):
        raise refused(setting, text, f"it must be {setting.rule}")
    return "full" if text.lower() == "full" else "none"


def read_absolute(setting: Setting, text: str, env: Mapping[str, str]) -> Path:
    """Return the absolute path, so that a later change of the current directory does not move it."""
    if text.startswith("~"):
        home = env.get("HOME", "")
        if text[1:2] not in ("", "/"):
            raise refused(setting, text, "~ is only understood as your own home directory", "Write the whole path.")
        if not home.startswith("/"):
            raise refused(setting, text, "HOME is not set", f"Set HOME, or set {setting.name} to a whole path.")
        text = home + text[1:]
    try:
        return Path(os.path.abspath(text))
    except OSError:
        raise refused(setting, text, "the current directory does not exist", "Write the whole path.") from None


def refused(setting: Setting, text: str, rule: str, hint: str = "") -> ConfigError:
    hint = hint or f"Unset it for the default ({setting.default})."
    return ConfigError(setting=setting.name, value=shown(mask_url(text)), rule=rule, hint=hint)


def read_log_store(setting: Setting, text: str, env: Mapping[str, str]) -> str:
    """Return the address of a bucket, or an absolute path."""
    if not text.startswith("s3:"):
        return str(read_absolute(setting, read_not_empty(setting, text), env))
    if not re.fullmatch(BUCKET, text):
        raise refused(setting, text, f"it must be {setting.rule}")
    return text.rstrip("/")
