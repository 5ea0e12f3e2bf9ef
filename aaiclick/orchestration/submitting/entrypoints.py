"""Entrypoints: the name of a function (`module.function`), finding the function by it, and checking arguments.

Workers find the functions they run by entrypoints. Nothing here calls a function, but finding one imports the user's
module.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, NoReturn
from weakref import WeakKeyDictionary

from aaiclick.config import settings
from aaiclick.errors import EntrypointError, SignatureMismatch
from aaiclick.module_path import search_in_current
from aaiclick.orchestration.rules.naming import untrusted_entrypoints as rules
from aaiclick.orchestration.rules.naming.executor_names import function_in, with_executor
from aaiclick.orchestration.rules.naming.script_names import MAIN, running_script, runs_here, script_name
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import plain, stand_in_for
from aaiclick.orchestration.rules.validation import escape_for_terminal, mask_secrets, shorten
from aaiclick.orchestration.submitting.executors import body_alone, executor_in

_MODULE_LEVEL = "Define it with def at the top level of a module."
_OR_HERE = "Or run the workflow in this process: job_test(workflow, …)."
ENTRYPOINT_LENGTH_MAX = 500
PLACES_MAX = 10_000
LISTED_MAX = 20
_KINDS = ("task", "job")

_importing: ContextVar[str | None] = ContextVar("importing", default=None)


# ---------------------------------------------------------------- decorated functions


def kind_of(thing: object) -> Literal["task", "job"] | None:
    """Return which decorator made an object; None if neither `@task` nor `@job` did."""
    kind = getattr(thing, "__aaiclick__", None)
    return kind if kind in _KINDS else None


def unwrap(thing: Any) -> Any:
    """Return the function inside a task or job factory; return anything else unchanged."""
    return thing.function if getattr(thing, "__aaiclick__", None) in _KINDS else thing  # each run asks several times


# ---------------------------------------------------------------- from a function to its entrypoint


def entrypoint_of(function: object) -> str:
    """Return the entrypoint of a function: `module.qualname`. Raise EntrypointError if a worker could not find it.

    A function of the script that is run directly is named by the module name of the script, not by `__main__`. That of
    a `@task` with an executor begins with its name.
    """
    executor = executor_in(function)
    function = unwrap(function)
    if not isinstance(function, types.FunctionType):
        cause, hint = _not_a_function(function)
        raise EntrypointError(entrypoint=shorten(function), cause=cause, hint=hint)
    label = f"{function.__module__}.{function.__qualname__}"
    if "<lambda>" in function.__qualname__:
        raise EntrypointError(entrypoint=label, cause="a lambda has no name", hint=_MODULE_LEVEL)
    if "<locals>" in function.__qualname__:
        cause = "it is defined inside a function, where no worker can import it"
        hint = f"{_MODULE_LEVEL} If a decorator made it, the decorator must use functools.wraps."
        raise EntrypointError(entrypoint=label, cause=cause, hint=hint)
    if not function.__module__:
        raise EntrypointError(entrypoint=label, cause="it has no module", hint=_MODULE_LEVEL)
    module = _script_of(function, label) if function.__module__ in MAIN else function.__module__
    return with_executor(executor, f"{module}.{function.__qualname__}")


def path_of(given: str | Callable[..., Any]) -> str:
    """Return the entrypoint of a function given as such or by name.

    In a job whose arguments came from outside, a name is checked and marked as untrusted.
    """
    return rules.named(given, settings().entrypoint_prefixes) if isinstance(given, str) else entrypoint_of(given)


def _not_a_function(thing: object) -> tuple[str, str]:
    if inspect.isbuiltin(thing):
        return "it is built into Python", "Call it from a function of your own."
    if inspect.ismethod(thing):
        return "it is bound to an object, which cannot be passed to a worker", _MODULE_LEVEL
    if isinstance(thing, functools.partial):
        return "it is a functools.partial", "Pass the function itself, and the arguments as its kwargs."
    if isinstance(thing, type):
        return "it is a class", "Call it from a function instead."
    if callable(thing):
        return f"it is a {type(thing).__name__}, not a function", "Call it from a function instead."
    return f"it is a {type(thing).__name__} and cannot be called", "Pass a function."


def _script_of(function: types.FunctionType, label: str) -> str:
    inner: Any = inspect.unwrap(function)
    names = getattr(inner, "__globals__", {})
    code = getattr(inner, "__code__", function.__code__)
    file = None if code.co_filename.startswith("<") else names.get("__file__")
    name, cause, hint = script_name(getattr(names.get("__spec__"), "name", None), file)
    if name is None and runs_here():
        return MAIN[0]
    if name is None:
        raise EntrypointError(entrypoint=label, cause=cause, hint=f"{hint} {_OR_HERE}")
    return name


# ---------------------------------------------------------------- from an entrypoint to what it names


def importing() -> str | None:
    """Return the module that is being imported to find an entrypoint, or None. Submitting is refused meanwhile."""
    return _importing.get()


def resolve(entrypoint: str) -> Callable[..., Any]:
    """Return the function, task factory or job factory that an entrypoint names; import its module if needed.

    A stand-in registered for the entrypoint is returned in its place, without an import.
    """
    found: Any = stand_in_for(entrypoint) or (_judged if rules.is_marked(entrypoint) else _found)(entrypoint)
    return found  # type: ignore[no-any-return]


def _judged(entrypoint: str) -> Any:
    """Find a function that was named from outside, and check it; this is done again for each call."""
    allowed = rules.allowed_for(entrypoint, settings().entrypoint_prefixes)
    rules.check_asked(entrypoint, allowed)
    found = _found(entrypoint)
    if function_in(entrypoint):
        rules.check_executor_asked(entrypoint, executor_in(found))
        rules.check_found(entrypoint, kind_of(found), unwrap(found), allowed)
    return found


def _found(entrypoint: str) -> Any:
    return _found_before(entrypoint) or _find(entrypoint)


def _find(entrypoint: str) -> Any:
    if (body := body_alone(entrypoint)) is not None:
        return body
    parts = _parts(plain(entrypoint))
    module, rest = _find_module(entrypoint, parts)
    found: Any = module
    for part in rest:
        if found is not module:
            rules.check_step(entrypoint, found)
        try:
            found = getattr(found, part)
        except Exception as error:  # a module's own __getattr__ is the user's code
            cause = f"{'.'.join(parts[: -len(rest)])} has no {'.'.join(rest)}"
            raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint="Check the spelling.") from error
    _check_callable(entrypoint, unwrap(found))
    keeps = len(rest) == 1 and parts[0] not in MAIN and len(_places) < PLACES_MAX
    if keeps and sys.modules.get(module.__name__) is module:
        _places[entrypoint] = (module.__name__, rest[0])
    return found


_places: dict[str, tuple[str, str]] = {}
"""(module, attribute) by entrypoint, so that a worker that runs one a million times does not search each time."""


def _found_before(entrypoint: str) -> Any:
    """Return what the cached place holds now; None if there is no such place or it holds no plain function."""
    place = _places.get(entrypoint) if type(entrypoint) is str else None
    if place is None:
        return None
    found = getattr(sys.modules.get(place[0]), place[1], None)
    return found if isinstance(unwrap(found), types.FunctionType) else None


def _parts(entrypoint: object) -> list[str]:
    if type(entrypoint) is not str:
        _refuse_form(entrypoint, f"it is a {type(entrypoint).__name__}")
    if len(entrypoint) > ENTRYPOINT_LENGTH_MAX:
        _refuse_form(entrypoint, f"it has {len(entrypoint)} characters, at most {ENTRYPOINT_LENGTH_MAX} are allowed")
    parts = function_in(entrypoint).split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        _refuse_form(entrypoint, "it is not a dotted name")
    if parts[0] in MAIN and not runs_here():
        hint = f"Put it into a module, and import it from there. {_OR_HERE}"
        cause = "__main__ is a different module in every process"
        raise EntrypointError(entrypoint=shorten(entrypoint), cause=cause, hint=hint)
    return parts


def _refuse_form(entrypoint: object, cause: str) -> NoReturn:
    hint = "Write module.function, such as my_flows.load."
    raise EntrypointError(entrypoint=shorten(entrypoint), cause=cause, hint=hint)


def _check_callable(entrypoint: str, found: Any) -> None:
    if not callable(found) or inspect.isbuiltin(found) or isinstance(found, type):
        cause, hint = _not_a_function(found)
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def _find_module(entrypoint: str, parts: list[str]) -> tuple[types.ModuleType, list[str]]:
    """Import the longest prefix of the name that is a module; return it with the remaining parts."""
    missing: ImportError | None = None
    for length in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:length])
        try:
            return _import(entrypoint, name), parts[length:]
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):  # the module exists, but one that it imports does not
                _refuse_import(entrypoint, name, error)
            missing = error
    hint = "Workers import what python -m would find: check the spelling, the directory and PYTHONPATH."
    raise EntrypointError(entrypoint=plain(entrypoint), cause=f"there is no module {parts[0]}", hint=hint) from missing


def _import(entrypoint: str, name: str) -> types.ModuleType:
    main = sys.modules.get("__main__")
    if main is not None and name in (MAIN[0], running_script()):
        return main
    search_in_current(name.partition(".")[0])
    try:
        with _flagged(name):
            return importlib.import_module(name)
    except (ModuleNotFoundError, KeyboardInterrupt):
        raise
    except SystemExit as error:
        cause = f"importing {name} called sys.exit({shorten(error.code)})"
        hint = 'Put the code that runs the script under: if __name__ == "__main__":'
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint) from error
    except BaseException as error:  # the module is the user's code: it may raise anything
        _refuse_import(entrypoint, name, error)


def _refuse_import(entrypoint: str, name: str, error: BaseException) -> NoReturn:
    try:
        text = escape_for_terminal(mask_secrets(str(error)))[:500]
    except Exception:  # str() of the user's own error may raise anything
        text = "its message cannot be shown"
    cause = f"importing {name} raised {type(error).__name__}: {text}"
    raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint="Mend the module.") from error


@contextmanager
def _flagged(name: str) -> Iterator[None]:
    token = _importing.set(_importing.get() or name)
    try:
        yield
    finally:
        _importing.reset(token)


# ---------------------------------------------------------------- arguments


class _Shape(NamedTuple):
    """The parameter names of a signature, grouped for comparison with the names of given arguments."""

    positional: tuple[str, ...]
    named: frozenset[str]
    required: frozenset[str]
    unnamed: frozenset[str]  # positional-only: a call by keyword cannot pass these
    takes_more: bool  # **kwargs
    takes_args: bool  # *args
    text: str


_UNKNOWN = _Shape((), frozenset(), frozenset(), frozenset(), False, False, "not known")
_shapes: WeakKeyDictionary[Any, _Shape | None] = WeakKeyDictionary()


def _shape_of(function: Any) -> _Shape | None:
    """Return the shape of a function's signature; None if `inspect` cannot tell the signature."""
    try:
        return _shapes[function]
    except KeyError:
        shape = _shapes[function] = _read_shape(function)
        return shape
    except TypeError:  # a callable object that cannot be a key
        return _read_shape(function)


def _read_shape(function: Any) -> _Shape | None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    kinds: dict[Any, list[inspect.Parameter]] = {}
    for parameter in signature.parameters.values():
        kinds.setdefault(parameter.kind, []).append(parameter)
    unnamed = kinds.get(inspect.Parameter.POSITIONAL_ONLY, [])
    either = kinds.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])
    named = either + kinds.get(inspect.Parameter.KEYWORD_ONLY, [])
    return _Shape(
        positional=tuple(parameter.name for parameter in unnamed + either),
        named=frozenset(parameter.name for parameter in named),
        required=frozenset(p.name for p in unnamed + named if p.default is inspect.Parameter.empty),
        unnamed=frozenset(parameter.name for parameter in unnamed),
        takes_more=inspect.Parameter.VAR_KEYWORD in kinds,
        takes_args=inspect.Parameter.VAR_POSITIONAL in kinds,
        text=_signature_text(function, signature),
    )


def _signature_text(function: Any, signature: inspect.Signature) -> str:
    try:
        text = f"{getattr(function, '__name__', 'function')}{_unquoted(signature)}"
    except Exception:  # the repr() of a default is the user's code
        text = f"({', '.join(signature.parameters)})"
    return escape_for_terminal(text if len(text) <= 300 else text[:299] + "…")


class _Bare:
    """A string annotation (`from __future__ import annotations`), shown without quotation marks."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _unquoted(signature: inspect.Signature) -> inspect.Signature:
    def bare(annotation: Any) -> Any:
        return _Bare(annotation) if isinstance(annotation, str) else annotation

    parameters = [each.replace(annotation=bare(each.annotation)) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=bare(signature.return_annotation))


def required_names(function: Any) -> frozenset[str]:
    """Return the names of the required parameters, without the positional-only ones."""
    shape = _shape_of(unwrap(function)) or _UNKNOWN
    return shape.required - shape.unnamed


def check_call(function: Any, names: Iterable[str], entrypoint: str) -> None:
    """Raise SignatureMismatch if the function cannot be called with keyword arguments of these names."""
    shape = _shape_of(unwrap(function))
    if shape is None:
        return
    given = frozenset(names)
    if shape.required <= given and (given <= shape.named or (shape.takes_more and not shape.unnamed)):
        return
    if cause := _mismatch(shape, given):
        raise SignatureMismatch(entrypoint=plain(entrypoint), cause=cause, signature=shape.text, hint="")


def _mismatch(shape: _Shape, given: frozenset[str]) -> str:
    """Return all faults of the names in one text; an empty text if there are none."""
    out_of_reach = shape.unnamed & (shape.required if shape.takes_more else shape.required | given)
    missing = shape.required - given - shape.unnamed
    unexpected = frozenset() if shape.takes_more else given - shape.named - shape.unnamed
    faults = (
        ("missing", missing),
        ("unexpected", unexpected),
        ("positional-only, but tasks are called by keyword", out_of_reach),
    )
    return "; ".join(f"{fault}: {_listed(names)}" for fault, names in faults if names)


def _listed(names: Iterable[str]) -> str:
    """Join the first LISTED_MAX names, and say how many more there are: a call may have ten thousand."""
    ordered = sorted(names)
    more = f" and {len(ordered) - LISTED_MAX} more" if len(ordered) > LISTED_MAX else ""
    return ", ".join(shorten(name) for name in ordered[:LISTED_MAX]) + more


def bind(function: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a call as keyword arguments; raise SignatureMismatch if they do not fit."""
    function = unwrap(function)
    entrypoint = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', '?')}"
    if not args:
        check_call(function, kwargs, entrypoint)
        return dict(kwargs)
    shape = _shape_of(function) or _UNKNOWN
    named = dict(zip(shape.positional, args, strict=False))
    if cause := _misplaced(shape, len(args), named, kwargs):
        raise SignatureMismatch(entrypoint=plain(entrypoint), cause=cause, signature=shape.text, hint="")
    named.update(kwargs)
    check_call(function, named, entrypoint)
    return named


def _misplaced(shape: _Shape, count: int, named: Mapping[str, object], kwargs: Mapping[str, object]) -> str:
    """Return the fault of the positional arguments; an empty text if there is none."""
    if out_of_reach := shape.unnamed & named.keys():
        return f"positional-only, but tasks are called by keyword: {_listed(out_of_reach)}"
    if count > len(shape.positional):
        if shape.takes_args:
            return "a task takes named parameters, but these would go into *args"
        return f"it takes {len(shape.positional)} positional arguments, {count} were given"
    twice = named.keys() & kwargs.keys()
    return f"given twice: {_listed(twice)}" if twice else ""
