"""Addresses of Redis: what is accepted, and what is refused in one line that hides the password."""

from __future__ import annotations

import pytest

from aaiclick.errors import ConfigError
from aaiclick.redis_urls import parse_redis_url, read_redis_url

ACCEPTED = {
    "redis://host": ((("host", 6379),), "", 0, False),
    "redis://host:1234/7": ((("host", 1234),), "", 7, False),
    "REDISS://[::1]:1/": ((("::1", 1),), "", 0, True),
    "redis://:p%40ss@host": ((("host", 6379),), "", 0, False),
    "redis+sentinel://one,two:2/service": ((("one", 26379), ("two", 2)), "service", 0, False),
    "rediss+sentinel://me:p@one/service/3": ((("one", 26379),), "service", 3, True),
}

REFUSED = {
    "": "it begins with none of",
    "host:6379": "it begins with none of",
    "redis:/host": "it begins with none of",
    "reddis://host": "it begins with none of",
    "http://host": "it begins with none of",
    "redis://": "each host is a name",
    "redis://host:0": "each host is a name",
    "redis://host:99999": "each host is a name",
    "redis://host:port": "each host is a name",
    "redis://one,two": "only redis+sentinel:// takes several hosts",
    "redis://host/zero": "the database of a Redis is a number",
    "redis://host/1/2": "the database of a Redis is a number",
    "redis://host/-1": "the database of a Redis is a number",
    "redis+sentinel://one,two": "it does not name the Sentinels' service",
    "redis+sentinel://one,two/": "it does not name the Sentinels' service",
    "redis+sentinel://one,/service": "each host is a name",
    "redis+sentinel://one/service/x": "the database of a Redis is a number",
    "redis://host?socket_timeout=1": "its option socket_timeout is not supported",
    "redis://host?sentinel_password=hunter2": "its option sentinel_password is not supported",
}


@pytest.mark.parametrize("url", ACCEPTED)
def test_what_is_accepted(url: str) -> None:
    found = parse_redis_url(url)
    assert (found.hosts, found.service, found.database, found.tls) == ACCEPTED[url]
    assert read_redis_url("AAICLICK_REDIS_URL", url) == url


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        read_redis_url("AAICLICK_REDIS_URL", url)
    line = str(refusal.value)
    assert REFUSED[url] in line
    assert "AAICLICK_REDIS_URL" in line
    assert "hunter2" not in line
    assert "\n" not in line


def test_a_login_is_not_printed() -> None:
    found = parse_redis_url("rediss+sentinel://me:hunter2@one/service?sentinel_password=hunter3")
    assert (found.user, found.password, found.options) == ("me", "hunter2", {"sentinel_password": "hunter3"})
    assert "hunter" not in repr(found)
