"""A Secret travels as where it is found, and has no value to show."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration import Secret
from aaiclick.orchestration.rules.secrets import keeping_secrets, keeps_secrets, mentions_secrets, revealed, secrets_in
from aaiclick.orchestration.rules.values.encoding import decode_kwargs, encode_kwargs
from aaiclick.orchestration.rules.values.reference_marks import marks_of


@pytest.mark.parametrize(
    "source", ["", "PASSWORD", "env:", "env:1X", "env:A-B", "env:A\n", "file:/x", "env:" + "A" * 300]
)
def test_only_names_of_variables_are_taken(source: str) -> None:
    with pytest.raises(InputError) as refused:
        Secret(source)
    assert "env:NAME" in str(refused.value)


def test_whoever_passes_the_value_by_mistake_does_not_find_it_in_the_error() -> None:
    with pytest.raises(InputError) as refused:
        Secret("hunter2hunter2")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(InputError):
        Secret(None)  # type: ignore[arg-type]


def test_all_that_is_shown_is_where_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_PASSWORD", "hunter2hunter2")
    secret = Secret("env:THE_PASSWORD")
    texts = [repr(secret), str(secret), f"{secret}", json.dumps([secret], default=str), repr(pickle.dumps(secret))]
    assert not any("hunter2" in text for text in texts)
    assert all("THE_PASSWORD" in text for text in texts)


def test_it_is_a_value_like_others() -> None:
    secret = Secret("env:A")
    assert secret == Secret("env:A") != Secret("env:B")
    assert {secret, Secret("env:A")} == {secret}
    assert copy.deepcopy(secret) == pickle.loads(pickle.dumps(secret)) == secret  # noqa: S301 (its own)
    with pytest.raises(AttributeError):
        secret.source = "env:B"


def test_it_travels_as_a_marked_reference() -> None:
    kwargs = {"one": Secret("env:A"), "more": [{"x": (Secret("env:B"), 1)}], "keys": {Secret("env:C")}}
    text = encode_kwargs(kwargs, bytes_max=10**6)
    assert mentions_secrets(text)
    assert decode_kwargs(text) == kwargs
    assert not marks_of(text)  # nothing to wait for


@pytest.mark.parametrize(
    "forged",
    ["env:HOME", {"object_type": "secret", "source": "env:HOME"}, {"secret": "env:HOME"}, "Secret('env:HOME')"],
)
def test_data_is_never_taken_for_one(forged: object) -> None:
    text = encode_kwargs({"x": forged}, bytes_max=10**6, references=False)
    assert list(secrets_in(decode_kwargs(text))) == []


def test_values_take_the_places_of_secrets_and_nothing_else_moves() -> None:
    data = {"a": [Secret("env:A"), 1], "b": (Secret("env:B"),), "c": {Secret("env:C")}, Secret("env:D"): None}
    assert revealed(data, lambda secret: secret.variable.lower()) == {"a": ["a", 1], "b": ("b",), "c": {"c"}, "d": None}
    assert len(list(secrets_in(data))) == 4


def test_a_function_can_be_marked_as_one_that_hands_secrets_on() -> None:
    def plain() -> None: ...

    assert not keeps_secrets(plain)
    assert keeps_secrets(keeping_secrets(plain))
