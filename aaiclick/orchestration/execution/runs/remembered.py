"""Remembered results, from the side of a run: the key of its result, the question to the worker, and what is kept.

Whether there is a hit is decided by the coordinator; see `Coordinator.recall`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aaiclick.config import settings
from aaiclick.data.tables.contents import contents_of
from aaiclick.data.views import Windowed
from aaiclick.errors import IdempotencyConflict
from aaiclick.orchestration.execution.runs.code_versions import code_version
from aaiclick.orchestration.execution.runs.current import current_services, name_key
from aaiclick.orchestration.execution.runs.run_data import Opened, RunData
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim, Done, Report
from aaiclick.orchestration.rules.cache_policies import Cache, Key, KeyFunction, Remembering, key_text
from aaiclick.orchestration.rules.failed import holds_failed
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import plain
from aaiclick.orchestration.rules.values.encoding import encode_kwargs, reference_in
from aaiclick.orchestration.rules.values.reference_marks import as_fixed, without_schema
from aaiclick.orchestration.rules.values.run_tables import is_run_table
from aaiclick.orchestration.rules.values.walk import BLOB_SETTING
from aaiclick.orchestration.submitting.entrypoints import resolve, unwrap

log = logging.getLogger("aaiclick")

KEY_FIELD = "idempotency_key"


@dataclass(slots=True, frozen=True)
class Asked:
    """The key under which a run has asked, and the answer.

    `contents`: digests of what the tables among its arguments contain, as far as these may change.
    """

    key: CacheKey
    answer: CacheAnswer
    contents: Mapping[str, str]


def policy_of(claim: Claim, found: object) -> Remembering | None:
    """Return the options that count for a run: those given with the call, else those of the function; None if none."""
    if claim.cache_policy is None:
        policy: Remembering | None = getattr(found, "remembering", None)
    else:
        policy = Remembering.from_json(claim.cache_policy)
    if policy is None or (policy.cache is None and policy.idempotency_key is None):
        return None
    return policy


async def ask(
    claim: Claim, found: Any, policy: Remembering, kwargs: dict[str, Any], opened: Opened, data: RunData
) -> Asked | None:
    """Ask for a remembered result; on a hit, the task has completed. Return None if nothing can be remembered.

    `kwargs` have their Secrets unrevealed: these count by their names. Raise IdempotencyConflict if the idempotency key
    was used with other arguments.
    """
    services = current_services()
    if services is None or holds_failed(list(kwargs.values())):
        return None
    contents = await _contents(data, opened)
    if contents is None:
        log.info("task %s is not cached: an argument is an Object whose contents cannot be told", claim.task_id)
        return None
    function = unwrap(found)
    inputs = _digest(_arguments(kwargs, contents))
    key = _key_of(claim, function, policy, kwargs, inputs)
    if key is None:
        log.warning("task %s is not cached: the source of %s is not known; give a version", claim.task_id, claim.name)
        return None
    answer = await services.recall(claim, key)
    if answer.conflict is not None:
        hint = "Another call needs another key."
        cause = f"task {answer.conflict} has completed with that key and other arguments"
        raise IdempotencyConflict(what=f"Task {claim.task_id}", key=key.label, cause=cause, hint=hint)
    return Asked(key, answer, contents)


async def kept(report: Report, asked: Asked, data: RunData) -> Report:
    """Return the report of a body that ran after a miss: it says under which key its result is to be remembered.

    Not if the body made tasks, or if a table among its arguments has changed meanwhile.
    """
    if not isinstance(report, Done) or report.children is not None or not asked.answer.remembers:
        return report
    if asked.contents and await contents_of((await data.context()).client, asked.contents.keys()) != asked.contents:
        return report
    if (text := as_fixed(report.result_json)) is None:
        return report
    return replace(report, result_json=text, remember=replace(asked.key, refresh=asked.answer.refresh))


async def _contents(data: RunData, opened: Opened) -> Mapping[str, str] | None:
    """Return the digests of what the tables contain that may still change; None if that of a named one cannot be told.

    Of the others it may be untold, as on a cluster: whoever inserts into the Object of another run is then not noticed.
    """
    tables = {each.table for each in opened.values() if isinstance(each, Windowed)}
    if not tables:
        return {}
    context = await data.context()
    found = await contents_of(context.client, tables - context.fixed)
    named = {table for table in tables if not is_run_table(table)}
    return found if named <= found.keys() else None


# ---------------------------------------------------------------- keys


def _key_of(
    claim: Claim, function: Callable[..., Any], policy: Remembering, kwargs: dict[str, Any], inputs: str
) -> CacheKey | None:
    entrypoint = plain(claim.entrypoint)
    if policy.idempotency_key is not None:
        text = _text(KEY_FIELD, policy.idempotency_key, kwargs)
        name_key(text)
        return CacheKey(_digest([KEY_FIELD, entrypoint, text]), entrypoint, inputs, text, once=True)
    cache = policy.cache
    assert cache is not None
    version = _version(cache, function)
    if version is None:
        return None
    label = None if cache.key is None else _text("cache.key", cache.key, kwargs)
    job = claim.job_id if cache.scope == "job" else 0
    digest = _digest(["cache", job, entrypoint, version, ["inputs", inputs] if label is None else ["key", label]])
    return CacheKey(digest, entrypoint, inputs, label, cache.ttl_s, cache.refresh)


def _version(cache: Cache, function: Callable[..., Any]) -> str | None:
    if cache.version is not None:
        return f"version {cache.version}"
    found = code_version(function)
    return None if found is None else f"code {found}"


def _text(field: str, key: Key, kwargs: Mapping[str, Any]) -> str:
    how: Any = unwrap(resolve(key.entrypoint)) if isinstance(key, KeyFunction) else key
    return key_text(field, how, kwargs)


def _arguments(kwargs: Mapping[str, Any], contents: Mapping[str, str]) -> object:
    """Return the arguments in a form that is equal for equal arguments.

    An Object counts by the name of its table and its window, and by what it contains now if that may change.
    """

    def mark(value: object) -> tuple[str, object] | None:
        found = reference_in(value)
        if found is None or not isinstance(value, Windowed):
            return found
        facts = without_schema(found[1])
        return found[0], {**facts, "table": value.table, "contents": contents.get(value.table)}

    given = dict(sorted(kwargs.items()))
    text = encode_kwargs(given, bytes_max=settings().blob_bytes_max, mark=mark, setting=BLOB_SETTING)
    envelopes: dict[str, Any] = json.loads(text)
    for envelope in envelopes.values():
        if "marks" in envelope:
            envelope["marks"].sort(key=json.dumps)
    return envelopes


def _digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
