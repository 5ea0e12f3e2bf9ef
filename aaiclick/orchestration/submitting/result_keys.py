"""The options `cache` and `idempotency_key` of a function: checking their keys, and making them fit to travel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from aaiclick.orchestration.rules.cache_policies import Key, KeyFunction, Remembering, check_template
from aaiclick.orchestration.submitting.entrypoints import entrypoint_of


def check_keys(function: Callable[..., Any], options: Remembering) -> None:
    """Raise InputError if a template names what is no parameter of the function."""
    cache_key = None if options.cache is None else options.cache.key
    if isinstance(cache_key, str) or isinstance(options.idempotency_key, str):
        parameters = inspect.signature(function).parameters.values()
        if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
            return
        names = [each.name for each in parameters]
        check_template("cache.key", cache_key, names)
        check_template("idempotency_key", options.idempotency_key, names)


def portable(options: Remembering) -> Remembering:
    """Return options that can be stored: functions that make keys are named by their entrypoints.

    Raise EntrypointError for a function that a worker could not find.
    """
    cache = options.cache
    if cache is not None:
        cache = replace(cache, key=_named(cache.key))
    return Remembering(cache, _named(options.idempotency_key))


def _named(key: Key | None) -> Key | None:
    return key if key is None or isinstance(key, str | KeyFunction) else KeyFunction(entrypoint_of(key))
