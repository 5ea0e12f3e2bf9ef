"""The addresses of databases: what is understood, what is refused, and what is never shown."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from aaiclick.config import Settings, mask_url
from aaiclick.errors import ConfigError
from aaiclick.urls import sqlite_file, sqlite_url

HOME = "/ada"


def read(variables: Mapping[str, str] | None = None, /, **more: str) -> Settings:
    return Settings.from_env({"HOME": HOME, **(variables or {}), **more})


def refusal(variables: Mapping[str, str] | None = None, /, **more: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(variables, **more)
    return str(caught.value)


# ---------------------------------------------------------------- the state and the data


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sqlite+aiosqlite:///~/.aaiclick/local.db", "sqlite+aiosqlite:////ada/.aaiclick/local.db"),
        ("sqlite:////data/x.db", "sqlite+aiosqlite:////data/x.db"),
        ("sqlite:////data/x.db?timeout=5", "sqlite+aiosqlite:////data/x.db?timeout=5"),
        ("postgres://u:p@h:5432/d", "postgresql+asyncpg://u:p@h:5432/d"),
        ("postgresql://u@h/d", "postgresql+asyncpg://u@h/d"),
        ("postgresql+asyncpg://user:pass@host:5432/database", "postgresql+asyncpg://user:pass@host:5432/database"),
        ("postgresql:///d?host=/run/pg", "postgresql+asyncpg:///d?host=/run/pg"),
        ("postgresql://u:p%40w@[::1]:5432/d", "postgresql+asyncpg://u:p%40w@[::1]:5432/d"),
        ("mariadb://u:p@h/d", "mariadb+asyncmy://u:p@h/d"),
        ("mysql+asyncmy://u:p@h:3306/d?charset=utf8mb4", "mysql+asyncmy://u:p@h:3306/d?charset=utf8mb4"),
    ],
)
def test_an_address_of_the_state_is_completed(given, expected):
    assert read(AAICLICK_SQL_URL=given).sql_url == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "it is empty"),
        ("localhost", "not an address"),
        ("://x", "begins with none of"),
        ("postgress://u:hush@h/d", "Did you mean postgres"),
        ("mssql://u:hush@h/d", "begins with none of sqlite, postgresql"),
        (
            "postgresql+psycopg2://u:hush@h/d",
            "the driver psycopg2 is not supported. Accepted are sqlite+aiosqlite, postg",
        ),
        ("sqlite+asyncpg:///x.db", "the driver asyncpg is not supported"),
        ("postgresql://u:hush@h", "it does not name a database"),
        ("mariadb://u:hush@h/", "it does not name a database"),
        ("postgresql://u:hush@h/a/b", "slash"),
        ("postgresql://", "neither a host nor a database"),
        ("postgresql://u:hush@h:0/d", "port"),
        ("postgresql://u:hush@h:65536/d", "port"),
        ("postgresql://u:hush@h:\uff15\uff14/d", "port"),
        ("postgresql://u:hu@sh@h/d", "%40"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite+aiosqlite:///file:x?mode=memory", "in memory"),
        ("sqlite://x.db", "three slashes"),
        ("sqlite:///", "not name a file"),
        ("sqlite:///dir/", "not name a file"),
        ("sqlite:///~bob/x.db", "your own home"),
        ("postgresql://u:hush@h/d\n", None),
        ("postgresql://u:hush@h/d\0", "control characters"),
        ("postgresql://u:hush@h/" + "d" * 10_000 + "\0", "control characters"),
    ],
)
def test_a_wrong_address_of_the_state_is_refused_in_one_line(given, said):
    if said is None:
        read(AAICLICK_SQL_URL=given)
        return
    message = refusal(AAICLICK_SQL_URL=given)
    assert message.startswith("AAICLICK_SQL_URL=")
    assert said in message
    assert "\n" not in message
    assert "hush" not in message
    assert "hu@sh" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("chdb:///data/ch", "chdb:///data/ch"),
        ("chdb://~/ch", "chdb:///ada/ch"),
        ("clickhouse://u:p@h:8123/d", "clickhouse://u:p@h:8123/d"),
        ("clickhouse://u:p@g,h:8124/d", "clickhouse://u:p@g,h:8124/d"),
        ("clickhouse://h/default?secure=true", "clickhouse://h/default?secure=true"),
    ],
)
def test_an_address_of_the_data_is_accepted(given, expected):
    assert read(AAICLICK_CH_URL=given).ch_url == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "it is empty"),
        ("chdb://", "not name a directory"),
        ("chdb://:memory:", "memory"),
        ("clickhous://u:hush@h/d", "Did you mean clickhouse?"),
        ("http://u:hush@h/d", "neither chdb nor clickhouse"),
        ("clickhouse://u:hush@h:8123", "not name a database"),
        ("clickhouse://u:hush@h:http/d", "port"),
        ("clickhouse://u:hush@g:8123,h:http/d", "port"),
        ("clickhouse://u:hush@g,h:8123", "not name a database"),
        ("clickhouse://u:hush@g!,h/d", "host cannot be read"),
    ],
)
def test_a_wrong_address_of_the_data_is_refused(given, said):
    message = refusal(AAICLICK_CH_URL=given)
    assert said in message
    assert "hush" not in message


SERVER = "clickhouse://u:hush@h/d"


def test_a_cluster_of_the_server_is_accepted():
    assert read(AAICLICK_CH_URL=SERVER, AAICLICK_CH_CLUSTER="prod-1").ch_cluster == "prod-1"
    assert read().ch_cluster == ""


@pytest.mark.parametrize(
    ("url", "given", "said"),
    [
        (SERVER, "", "letters, digits"),
        (SERVER, "a`b", "letters, digits"),
        (SERVER, "{cluster}", "letters, digits"),
        ("chdb:///data", "prod", "the embedded engine is no cluster"),
    ],
)
def test_a_wrong_cluster_is_refused(url, given, said):
    message = refusal(AAICLICK_CH_URL=url, AAICLICK_CH_CLUSTER=given)
    assert message.startswith("AAICLICK_CH_CLUSTER=")
    assert said in message


@pytest.mark.parametrize("name", ["local.db", "with blank.db", "100%.db", "a?b#c.db", "zäh.db", "a@b:c.db"])
def test_a_sqlite_file_of_any_name_reaches_the_driver(name):
    url = sqlite_url(Path("/data") / name)
    assert make_url(url).database == f"/data/{name}"
    assert sqlite_file(url) == Path("/data") / name
    assert read(AAICLICK_SQL_URL=url).sql_url == url


# ---------------------------------------------------------------- POSTGRES_*


def test_the_address_wins_over_postgres_variables():
    found = read(AAICLICK_SQL_URL="sqlite:////x.db", POSTGRES_HOST="db", POSTGRES_PORT="abc")
    assert found.sql_url == "sqlite+aiosqlite:////x.db"


@pytest.mark.parametrize("host", [{}, {"POSTGRES_HOST": ""}])
def test_postgres_variables_without_a_host_are_somebody_elses(host):
    assert read(host, POSTGRES_PORT="abc", POSTGRES_USER="").is_sqlite


def test_a_password_of_any_kind_reaches_the_driver():
    url = make_url(read(POSTGRES_HOST="db", POSTGRES_USER="a@b", POSTGRES_PASSWORD=" p@s/s:w%?\n#é").sql_url)
    assert (url.username, url.password, url.host, url.port) == ("a@b", " p@s/s:w%?\n#é", "db", 5432)
    assert url.database == "aaiclick_orchestration"


def test_a_host_may_be_an_ip_address_or_a_socket():
    assert make_url(read(POSTGRES_HOST="::1").sql_url).host == "::1"
    url = make_url(read(POSTGRES_HOST="/run/postgresql").sql_url)
    assert url.host is None
    assert dict(url.query) == {"host": "/run/postgresql", "port": "5432"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"POSTGRES_HOST": "a b"},
        {"POSTGRES_HOST": "h/d"},
        {"POSTGRES_DB": ""},
        {"POSTGRES_USER": ""},
        {"POSTGRES_PORT": "0"},
    ],
)
def test_wrong_postgres_variables_are_named(wrong):
    assert refusal({"POSTGRES_HOST": "db", **wrong}).startswith(f"{next(iter(wrong))}=")


def test_a_password_that_cannot_be_written_is_not_shown():
    message = refusal(POSTGRES_HOST="db", POSTGRES_PASSWORD="hush\udcff")
    assert message.startswith("POSTGRES_PASSWORD=*** cannot be used")


# ---------------------------------------------------------------- passwords


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://u:hush@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://u:hu%40sh@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:hu@sh/hush@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:hush?hush@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:hush@hush?hush@h/d", "postgresql://u:***@h/d"),
        ("postgresql://h/d?user=u&password=hush", "postgresql://h/d?user=u&password=***"),
        ("postgresql://h/d?pass%77ord=hush&x=1", "postgresql://h/d?pass%77ord=***&x=1"),
        ("postgresql://u:hush@h/d?sslpassword=hush@hush", "postgresql://u:***@h/d?sslpassword=***"),
        ("postgresql://h:1/d?password=hush@hush", "postgresql://h:***"),
        ("postgresql://u:hush?a=hush@h/d", "postgresql://u:***"),
        ("clickhouse://:hush@h/d", "clickhouse://:***@h/d"),
        ("u:hush@h/d", "u:***@h/d"),
        ("postgresql:/u:hush@h/d", "postgresql:***@h/d"),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
        ("sqlite+aiosqlite:////data/a@b.db", "sqlite+aiosqlite:////data/a@b.db"),
        ("", ""),
    ],
)
def test_a_password_is_masked_wherever_it_stands(url, masked):
    assert mask_url(url) == masked
