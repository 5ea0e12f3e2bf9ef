"""Dicts that stand for Objects, Views and values in top-level kwargs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside
from aaiclick.orchestration.rules.values.encoding import decode_kwargs, encode_kwargs
from aaiclick.orchestration.rules.values.reference_marks import marks_of

MB = 1_000_000


def referred(**kwargs: object) -> Any:
    return json.loads(encode_kwargs(kwargs, bytes_max=MB, references=True))


def test_references_are_read_only_where_asked() -> None:
    given: dict[str, object] = {"x": {"object_type": "object", "table": "t1"}}
    assert decode_kwargs(encode_kwargs(given, bytes_max=MB)) == given
    assert referred(**given) == {"x": {"object_type": "object", "table": "t1"}}
    inner = {"deep": [{"object_type": "object", "table": "t1"}]}
    assert decode_kwargs(encode_kwargs({"x": inner}, bytes_max=MB, references=True)) == {"x": inner}


def test_the_seeds_kwargs_are_understood() -> None:
    view = {"object_type": "view", "table_id": "t9", "offset": 10000, "limit": 10000, "where": "value > 100"}
    text = encode_kwargs(
        {
            "input_data": view,
            "config": {"object_type": "pyobj", "value": {"threshold": 0.5, "pair": (1, 2)}},
            "reference_table": {"object_type": "object", "table_id": "t111222333"},
            "newer": {"object_type": "object", "table": "t123", "job_id": 789},
        },
        bytes_max=MB,
        references=True,
    )
    found = decode_kwargs(text, lambda kind, payload: (kind, payload))
    assert found == {
        "input_data": ("view", {"table": "t9", "offset": 10000, "limit": 10000, "where": "value > 100"}),
        "config": {"threshold": 0.5, "pair": (1, 2)},
        "reference_table": ("object", {"table": "t111222333"}),
        "newer": ("object", {"table": "t123", "job_id": 789}),
    }
    assert [kind for kind, _ in marks_of(text)] == ["view", "object", "object"]


def test_a_pyobj_may_hold_a_reference_lookalike_and_none() -> None:
    inner = {"object_type": "object", "table": "t1"}
    text = encode_kwargs({"x": {"object_type": "pyobj", "value": inner}}, bytes_max=MB, references=True)
    assert decode_kwargs(text) == {"x": inner}
    assert referred(x={"object_type": "pyobj", "value": None})["x"]["value"] is None


@pytest.mark.parametrize("kind", ["task", "other", 5, None, ["object"], ("object",)])
def test_other_object_types_are_plain_dicts(kind: object) -> None:
    given = {"object_type": kind, "table": 3}
    assert decode_kwargs(encode_kwargs({"x": given}, bytes_max=MB, references=True)) == {"x": given}


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"object_type": "pyobj"}, "no value"),
        ({"object_type": "pyobj", "value": 1, "marks": []}, "no such field"),
        ({"object_type": "object"}, "no table"),
        ({"object_type": "object", "table": None}, "no table"),
        ({"object_type": "object", "table": 5}, "kwargs.x.table"),
        ({"object_type": "object", "table": "t\0"}, "kwargs.x.table"),
        ({"object_type": "object", "table": "t1", "table_id": "t1"}, "no such field"),
        ({"object_type": "object", "table": "t1", "limit": 5}, "no such field"),
        ({"object_type": "object", "table": "t1", "job_id": 0}, "kwargs.x.job_id"),
        ({"object_type": "object", "table": "t1", 5: 0}, "no such field"),
        ({"object_type": "view", "table": "t1", "limit": -1}, "kwargs.x.limit"),
        ({"object_type": "view", "table": "t1", "limit": True}, "kwargs.x.limit"),
        ({"object_type": "view", "table": "t1", "offset": 1.5}, "kwargs.x.offset"),
        ({"object_type": "view", "table": "t1", "where": 5}, "kwargs.x.where"),
        ({"object_type": "view", "table": "t1", "where": "a = '\0'"}, "kwargs.x.where"),
        ({"object_type": "view", "table": "t1", "order_by": ""}, "kwargs.x.order_by"),
        ({"object_type": "view", "table": "t1", "selected_fields": "a"}, "kwargs.x.selected_fields"),
        ({"object_type": "view", "table": "t1", "selected_fields": ["a"], "shape": "list"}, "kwargs.x.shape"),
        ({"object_type": "view", "table": "t1", "selected_fields": ["a", 5]}, "selected_fields[1]"),
    ],
)
def test_a_bad_reference_is_refused(reference: dict[object, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        referred(x=reference)
    assert said in str(caught.value)


def test_a_view_keeps_all_its_fields() -> None:
    view = {"object_type": "view", "table": "t1", "limit": 0, "offset": 0, "where": "a\n> 1", "order_by": "a DESC"}
    assert referred(x={**view, "selected_fields": ("a", "b c")})["x"] == {**view, "selected_fields": ["a", "b c"]}
    assert referred(x={**view, "limit": None})["x"] == {k: v for k, v in view.items() if k != "limit"}


@pytest.mark.parametrize("kind", ["object", "view"])
def test_what_came_from_outside_stands_for_no_table(kind: str) -> None:
    """Its condition is SQL, and its table may be anybody's: whoever writes code passes the Object itself."""
    given = {"object_type": kind, "table": "p_prices"}
    assert referred(x=given) == {"x": given}
    with arguments_from_outside():
        with pytest.raises(InputError, match="came from outside"):
            referred(x=given)
        assert referred(x={"object_type": "pyobj", "value": given}) == {"x": {"object_type": "pyobj", "value": given}}
