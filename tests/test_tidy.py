"""Style kept by an ordinary test: limits, directions and words that reviews would otherwise repeat.

A rule looks at one file and gives its complaints, as (line, what is wrong); each is tried below on a breach.
"""

import ast
import gc
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
METHODS_MAX = 20
UNTESTED_LINES_MAX = 40

STORE = "aaiclick/orchestration/store/"
MIGRATIONS = "aaiclick/orchestration/store/migrations/"  # written once and never touched again: limits do not serve
OWNERS_OF_CONNECTIONS = {f"{STORE}{name}.py" for name in ("connecting", "database", "inline", "schema")}
SQL_PACKAGES = {"sqlalchemy", "alembic"}
ENDS_OF_CLAIMS = (f"{STORE}claim_ends.py", f"{STORE}dialects/")
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
VAGUE_NAMES = {"utils", "helpers", "common", "base", "manager", "handler", "core"}
VAGUE_NAMES |= {"util", "helper", "managers", "handlers"}
MACHINE_PATH = re.compile(r"(?<![\w.:/*-])/(?:root|work|home/\w+|Users/\w+)/")

# Modules without a test file at their own path, each with the one that tries them; a room may be tried as a whole.
TRIED_IN: dict[str, str] = {
    "aaiclick/config_fleet.py": "tests/test_config_docs.py",
    "aaiclick/config_setting.py": "tests/test_config_docs.py",
    "aaiclick/config_values.py": "tests/test_config.py",
    "aaiclick/cli/afar.py": "tests/stories/test_commands_from_afar.py",
    "aaiclick/cli/jobs/log_printing.py": "tests/cli/jobs/test_logs.py",
    "aaiclick/cli/jobs/logs_afar.py": "tests/stories/test_commands_from_afar.py",
    "aaiclick/client/verbs/": "tests/client/test_api_client.py",
    "aaiclick/data/clients/coordinators.py": "tests/server/node/test_data_proxy.py",
    "aaiclick/data/__init__.py": "tests/test_names.py",
    "aaiclick/data/tables/blobs.py": "tests/stories/test_large_values.py",
    "aaiclick/data/function_page.py": "tests/docs/test_function_page.py",
    "aaiclick/data/operations/": "tests/data/test_operations.py",
    "aaiclick/data/files/staging.py": "tests/data/files/test_loading.py",
    "aaiclick/data/versions/changes.py": "tests/data/versions/test_rewriting.py",
    "aaiclick/distributed/execution_records.py": "tests/distributed/test_leasing.py",
    "aaiclick/distributed/task_managers.py": "tests/distributed/test_leasing.py",
    "aaiclick/orchestration/store/claims/single_claims.py": "tests/distributed/test_leasing.py",
    "aaiclick/orchestration/models/lease_fields.py": "tests/distributed/test_leasing.py",
    "aaiclick/orchestration/control/control_loop.py": "tests/orchestration/control/test_control_loop.py",
    "aaiclick/orchestration/coordinator/contract.py": "tests/contracts/test_coordinator.py",
    "aaiclick/orchestration/coordinator/http/front_door.py": "tests/stories/test_remote_bodies.py",
    "aaiclick/orchestration/coordinator/http/client.py": "tests/contracts/test_coordinator.py",
    "aaiclick/orchestration/coordinator/ownership.py": "tests/server/node/test_rights.py",
    "aaiclick/orchestration/coordinator/machine_ids.py": "tests/orchestration/store/leases/test_machine_ids.py",
    "aaiclick/orchestration/execution/running_bodies.py": "tests/orchestration/execution/test_worker_leaving.py",
    "aaiclick/orchestration/execution/executors/contract.py": "tests/contracts/test_executor.py",
    "aaiclick/orchestration/execution/executors/questions.py": "tests/orchestration/execution/executors/test_wire.py",
    "aaiclick/orchestration/expansions.py": "tests/orchestration/test_operators.py",
    "aaiclick/orchestration/execution/logs/log_targets.py": "tests/server/node/test_log_pieces.py",
    "aaiclick/orchestration/log_stores/": "tests/contracts/test_log_store.py",
    "aaiclick/orchestration/models/token.py": "tests/orchestration/access/test_tokens.py",
    "aaiclick/orchestration/parts.py": "tests/orchestration/test_operators.py",
    "aaiclick/orchestration/rules/naming/script_names.py": "tests/orchestration/submitting/test_entrypoints_scripts.py",
    "aaiclick/orchestration/store/access/audit.py": "tests/orchestration/access/test_audit.py",
    "aaiclick/orchestration/store/access/tokens.py": "tests/orchestration/access/test_tokens.py",
    "aaiclick/orchestration/store/dialects/copy_moves.py": "tests/orchestration/test_database_copies.py",
    "aaiclick/orchestration/store/copies.py": "tests/orchestration/test_database_copies.py",
    "aaiclick/orchestration/store/access/callbacks.py": "tests/contracts/test_coordinator_runs.py",
    "aaiclick/orchestration/store/definitions/access_tables.py": "tests/orchestration/access/test_tokens.py",
    "aaiclick/orchestration/store/reading/dead_letters.py": "tests/orchestration/queries/test_dead_letters.py",
    "aaiclick/orchestration/store/reading/event_feed.py": "tests/orchestration/queries/test_event_feed.py",
    "aaiclick/orchestration/store/reading/job_graphs.py": "tests/orchestration/queries/test_job_graphs.py",
    "aaiclick/orchestration/store/connecting.py": "tests/migrations/test_connecting.py",
    "aaiclick/orchestration/store/schema.py": "tests/migrations/test_schema.py",
    "aaiclick/server/node/verbs.py": "tests/server/node/test_road.py",
    "aaiclick/orchestration/store/replicas/": "tests/server/replicas/test_feeder.py",
    "aaiclick/server/replicas/": "tests/server/replicas/test_doors.py",
    "aaiclick/representations/": "tests/stories/test_one_view.py",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Complaint = tuple[int, str]


@dataclass(frozen=True)
class File:
    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        if not self.path.endswith(".py"):
            return []
        gc.disable()  # nothing of it goes before the end: to look for cycles takes as long as to parse
        try:
            return list(ast.walk(ast.parse(self.text)))
        finally:
            gc.enable()
            gc.freeze()

    def is_under(self, *folders: str) -> bool:
        return self.path.startswith(folders)


def long_files(file: File) -> Iterator[Complaint]:
    if file.path.endswith(".py") and not file.is_under(MIGRATIONS) and len(file.lines) > FILE_LINES_MAX:
        yield FILE_LINES_MAX, f"{len(file.lines)} lines in a file; at most {FILE_LINES_MAX}"


def long_functions(file: File) -> Iterator[Complaint]:
    if file.is_under(MIGRATIONS):
        return
    for node in file.nodes:
        if isinstance(node, Function) and (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX:
            yield node.lineno, f"{lines} lines in {node.name}(); at most {FUNCTION_LINES_MAX}"


def wide_classes(file: File) -> Iterator[Complaint]:
    for node in file.nodes:
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(member, Function) for member in node.body)
            if methods > METHODS_MAX:
                yield node.lineno, f"{methods} methods in {node.name}; at most {METHODS_MAX}"


def imports_inside_functions(file: File) -> Iterator[Complaint]:
    """Our own modules are imported at the top, where import-linter's arrows can be seen; a comment may say why not."""
    if not file.is_under("aaiclick/"):
        return
    inside = {node for function in file.nodes if isinstance(function, Function) for node in ast.walk(function)}
    for node in file.nodes:
        if node in inside and any(name.split(".")[0] in {"", "aaiclick"} for name in imported(node)):
            statement = file.lines[node.lineno - 1 : node.end_lineno]  # type: ignore[attr-defined]
            if not any("#" in line for line in statement):
                yield at(node), "aaiclick imported inside a function, with no comment that says why"


def sql_outside_the_store(file: File) -> Iterator[Complaint]:
    if file.is_under("aaiclick/") and not file.is_under(STORE):
        for node in file.nodes:
            for package in SQL_PACKAGES.intersection(name.split(".")[0] for name in imported(node)):
                yield at(node), f"{package} imported outside {STORE}"


def transactions_in_the_store(file: File) -> Iterator[Complaint]:
    """Its functions take a session: whoever calls them says what belongs together, and what may be tried again."""
    if not file.is_under(STORE) or file.is_under(MIGRATIONS) or file.path in OWNERS_OF_CONNECTIONS:
        return
    for node in file.nodes:
        match node:
            case ast.ImportFrom(module="aaiclick.orchestration.store.database"):
                yield at(node), "a store function takes a session, and no database"
            case ast.Call(func=ast.Attribute(attr="transact" | "write_one" | "commit" | "rollback" | "begin" as name)):
                yield at(node), f"{name}() in the store: transactions belong to whoever calls it"


def claims_that_end_elsewhere(file: File) -> Iterator[Complaint]:
    """What is held with a claim is freed where claims end: a claim that is deleted elsewhere would leave it behind."""
    if not file.is_under("aaiclick/") or file.is_under(*ENDS_OF_CLAIMS):
        return
    names: set[str] = set()
    for node in file.nodes:
        match node:
            case ast.ImportFrom(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.Constant(value=str(text)) if re.search(r"DELETE\s+FROM\s+claims", text, re.IGNORECASE):
                yield at(node), "a claim ends elsewhere than in store/claim_ends.py"
            case ast.Call(func=ast.Attribute(attr="complete_claims" | "delete_claims")):
                yield at(node), "claims end through store/claim_ends.py, and not by the dialect's verbs"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="claims"), attr="delete")):
                yield at(node), "a claim ends elsewhere than in store/claim_ends.py"
    if file.is_under(STORE) and {"claims", "delete"} <= names:
        yield 1, "whoever knows the table of claims deletes nothing: that is for store/claim_ends.py"


def unsafe_calls(file: File) -> Iterator[Complaint]:
    """Tests may run what documentation prints; nothing else runs text or loads code from bytes."""
    if file.is_under("tests/"):
        return
    for node in file.nodes:
        for module in UNSAFE_MODULES.intersection(name.split(".")[0] for name in imported(node)):
            yield at(node), f"{module} is not used here"
        match node:
            case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                yield at(node), f"{name}() is not used here"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen" as name)):
                yield at(node), f"os.{name}() runs a shell"
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                yield at(node), "shell=True runs a shell"
            case ast.Attribute(attr="utcnow" | "utcfromtimestamp" as name):
                yield at(node), f"{name} gives a naive time"


def swallowed_exceptions(file: File) -> Iterator[Complaint]:
    for node in file.nodes:
        match node:
            case ast.ExceptHandler() if is_broad(node.type) and all(is_nothing(step) for step in node.body):
                yield at(node), "a broad except that does nothing"
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=caught):
                if any(is_broad(one) for one in caught):
                    yield at(node), "a broad suppress()"


def vague_names(file: File) -> Iterator[Complaint]:
    path = PurePosixPath(file.path)
    if path.suffix == ".py":
        for name in VAGUE_NAMES.intersection((*path.parent.parts, path.stem.removeprefix("test_"))):
            yield 1, f"«{name}» says nothing about what is inside"


def machine_paths(file: File) -> Iterator[Complaint]:
    for number, line in enumerate(file.lines, 1):
        if found := MACHINE_PATH.search(line):
            yield number, f"{found.group()} is a path of one machine"


def untested_modules(file: File) -> Iterator[Complaint]:
    path = PurePosixPath(file.path)
    if not file.is_under("aaiclick/") or file.is_under(MIGRATIONS) or path.suffix != ".py":
        return
    if len(file.lines) > UNTESTED_LINES_MAX and not places_of_tests(path) & paths_in_tests():
        yield 1, f"none of {', '.join(sorted(places_of_tests(path)))}"


def places_of_tests(path: PurePosixPath) -> set[str]:
    """Where the test of a module may be: at its path under tests, or in a room above."""
    is_package = path.stem in {"__init__", "__main__"}
    stem, room = (path.parent.name, path.parent.parent) if is_package else (path.stem, path.parent)
    rooms = [path.parent, room, *list(room.parents)[:-2]] if is_package else [room, *list(room.parents)[:-2]]
    named = {str(PurePosixPath("tests", *each.parts[1:], f"test_{stem}.py")) for each in rooms}
    return named | {test for tried, test in TRIED_IN.items() if str(path).startswith(tried)}


RULES: tuple[Callable[[File], Iterable[Complaint]], ...] = (
    long_files,
    long_functions,
    wide_classes,
    imports_inside_functions,
    sql_outside_the_store,
    transactions_in_the_store,
    claims_that_end_elsewhere,
    unsafe_calls,
    swallowed_exceptions,
    vague_names,
    machine_paths,
    untested_modules,
)


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports; a relative one begins with a dot."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module, level=level):
            return ["." * level + (module or "")]
    return []


def at(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def is_broad(caught: ast.expr | None) -> bool:
    match caught:
        case None | ast.Name(id="Exception" | "BaseException"):
            return True
        case ast.Tuple(elts=several):
            return any(is_broad(one) for one in several)
    return False


def is_nothing(step: ast.stmt) -> bool:
    return isinstance(step, ast.Pass | ast.Continue) or (
        isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)
    )


def tracked_paths(root: Path) -> list[str]:
    """What is, or could be, committed; everything but hidden folders where there is no git."""
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return sorted(walked_paths(root))
    return sorted(path for path in listed.split("\0") if path and (root / path).is_file())


def walked_paths(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in names)


@cache
def tree() -> list[File]:
    files = []
    for path in tracked_paths(ROOT):
        try:
            files.append(File(path, (ROOT / path).read_text(encoding="utf-8")))
        except (UnicodeDecodeError, FileNotFoundError):  # not text, or taken away meanwhile
            continue
    return files


@cache
def paths_in_tests() -> set[str]:
    return {file.path for file in tree() if file.is_under("tests/")}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_is_tidy(rule: Callable[[File], Iterable[Complaint]]) -> None:
    complaints = [f"{file.path}:{line}: {what}" for file in tree() for line, what in rule(file)]
    assert not complaints, f"{rule.__name__}:\n" + "\n".join(complaints)


ANYWHERE = "aaiclick/place.py"


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (long_files, ANYWHERE, "x = 1\n" * 401),
        (long_functions, ANYWHERE, "async def f():\n" + "    x = 1\n" * 60),
        (wide_classes, ANYWHERE, "class C:\n" + "".join(f"    def m{i}(self): ...\n" for i in range(21))),
        (imports_inside_functions, ANYWHERE, "def f():\n    from aaiclick.ids import x\n"),
        (imports_inside_functions, ANYWHERE, "def f():\n    if x:\n        import aaiclick\n"),
        (imports_inside_functions, ANYWHERE, "def f():\n    from . import x\n"),
        (sql_outside_the_store, "aaiclick/orchestration/jobs.py", "from sqlalchemy.orm import Session\n"),
        (sql_outside_the_store, ANYWHERE, "def f():\n    import alembic\n"),
        (transactions_in_the_store, STORE + "x.py", "from aaiclick.orchestration.store.database import Database\n"),
        (transactions_in_the_store, STORE + "x.py", "async def f(database):\n    await database.transact(g)\n"),
        (transactions_in_the_store, STORE + "x.py", "async def f(session):\n    await session.connection.commit()\n"),
        (claims_that_end_elsewhere, STORE + "x.py", "SQL = 'delete from claims where task_id = ?'\n"),
        (claims_that_end_elsewhere, STORE + "x.py", "async def f(s):\n    await s.run(claims.delete())\n"),
        (claims_that_end_elsewhere, STORE + "x.py", "async def f(s):\n    await s.dialect.delete_claims(s, 1, [2])\n"),
        (claims_that_end_elsewhere, STORE + "x.py", "async def f(s):\n    await s.dialect.complete_claims(s, 1, d)\n"),
        (claims_that_end_elsewhere, STORE + "x.py", "from sqlalchemy import delete\nfrom x.tables import claims\n"),
        (unsafe_calls, ANYWHERE, "import pickle\n"),
        (unsafe_calls, ANYWHERE, "eval('1')\n"),
        (unsafe_calls, ANYWHERE, "exec('1')\n"),
        (unsafe_calls, ANYWHERE, "run('ls', shell=True)\n"),
        (unsafe_calls, ANYWHERE, "os.system('ls')\n"),
        (unsafe_calls, ANYWHERE, "datetime.utcnow()\n"),
        (swallowed_exceptions, ANYWHERE, "try:\n    x()\nexcept Exception:\n    pass\n"),
        (swallowed_exceptions, ANYWHERE, "try:\n    x()\nexcept:\n    ...\n"),
        (swallowed_exceptions, ANYWHERE, "try:\n    x()\nexcept (ValueError, BaseException):\n    pass\n"),
        (swallowed_exceptions, ANYWHERE, "with contextlib.suppress(Exception):\n    x()\n"),
        (vague_names, "aaiclick/orchestration/utils.py", ""),
        (vague_names, "aaiclick/core/jobs.py", ""),
        (machine_paths, "docs/page.md", "see `/" + "work/here`\n"),
        (machine_paths, "scripts/run", "cd /" + "root/project\n"),
        (untested_modules, "aaiclick/never_heard_of.py", "x = 1\n" * 41),
        (untested_modules, "aaiclick/never_heard_of/__init__.py", "x = 1\n" * 41),
        (untested_modules, "aaiclick/server/claims.py", "x = 1\n" * 41),  # only another room's has a test
        (untested_modules, "aaiclick/orchestration/clock.py", "x = 1\n" * 41),
    ],
)
def test_a_rule_finds_what_breaks_it(rule: Callable[[File], Iterable[Complaint]], path: str, text: str) -> None:
    assert list(rule(File(path, text)))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (ANYWHERE, "def f():\n    from aaiclick.ids import x  # keeps start-up light\n"),
        (ANYWHERE, "def f():\n    import json\n"),
        (STORE + "claims.py", "from sqlalchemy import select\n"),
        (STORE + "claim_ends.py", "async def f(s):\n    await s.dialect.delete_claims(s, 1, [2])\n"),
        (STORE + "database.py", "await connection.commit()\n"),
        (MIGRATIONS + "versions/0001.py", "def upgrade():\n" + "    x = 1\n" * 500),
        (ANYWHERE, "try:\n    x()\nexcept Exception:\n    log()\n"),
        (ANYWHERE, "try:\n    x()\nexcept OSError:\n    pass\n"),
        ("docs/page.md", "https://example.com/work/page, our/work/folder, ../work/x and /tmp/x\n"),
        ("docs/page.txt", "x\n" * 500),
        ("aaiclick/data/operations/another.py", "x = 1\n" * 41),
        ("aaiclick/data/verbs/room/joining.py", "x = 1\n" * 41),
        ("aaiclick/ids.py", "x = 1\n" * 41),
    ],
)
def test_the_rules_let_pass_what_is_fine(path: str, text: str) -> None:
    assert not [what for rule in RULES for _, what in rule(File(path, text))]


def test_without_git_the_files_are_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("aaiclick/ids.py", "README.md", ".venv/lib/x.py", "aaiclick/__pycache__/ids.pyc"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    monkeypatch.setenv("PATH", "")
    assert tracked_paths(tmp_path) == ["README.md", "aaiclick/ids.py"]
