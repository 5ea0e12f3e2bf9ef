"""Names of tables, and texts that refer to them."""

from __future__ import annotations

import json

import pytest

from aaiclick.orchestration.rules.values.run_tables import (
    is_run_table,
    maker_of,
    run_table,
    tables_named,
    temporary_tables_named,
    value_with_tables,
    with_tables,
)

KWARGS = json.dumps(
    {
        "a": {"object_type": "object", "table": "c12_1"},
        "b": {"object_type": "view", "table": "t7_0_2", "where": "x > 'c12_1'"},
        "c": {
            "object_type": "pyobj",
            "value": [None, 1],
            "marks": [[[0], "object", {"table": "c12_1"}], [[], "tuple"]],
        },
        "d": {"object_type": "pyobj", "value": {"object_type": "object", "table": "c12_1"}},
        "e": {"object_type": "object", "table": "p_prices"},
    }
)


def test_a_name_tells_who_made_the_table() -> None:
    assert run_table(2**62, 3, 14) == f"t{2**62}_3_14"
    assert maker_of(run_table(2**62, 3, 14)) == 2**62


@pytest.mark.parametrize(
    "name", ["t1_1_1 ", "t01_1_1", "t1_1", "t1_1_0", "t1_1_1_1", "p_t1_1_1", "T1_1_1", "t1_1_\u0661", "", None, 5]
)
def test_only_the_exact_form_is_a_runs_table(name: object) -> None:
    assert not is_run_table(name)


def test_tables_are_found_where_they_are_referred_to_and_nowhere_else() -> None:
    assert tables_named(KWARGS) == {"t7_0_2"}
    assert temporary_tables_named(KWARGS) == {"c12_1"}
    assert tables_named(None) == temporary_tables_named("null") == set()


def test_references_are_led_to_other_tables_and_data_stays_data() -> None:
    led = json.loads(with_tables(KWARGS, {"c12_1": "t9_0_1"}))
    expected = json.loads(KWARGS)
    expected["a"]["table"] = "t9_0_1"
    expected["c"]["marks"][0][2]["table"] = "t9_0_1"
    assert led == expected


def test_references_in_one_value_are_led_to_other_tables() -> None:
    for name, envelope in json.loads(KWARGS).items():
        led = json.loads(value_with_tables(json.dumps(envelope), {"c12_1": "t9_0_1"}))
        assert led == json.loads(with_tables(KWARGS, {"c12_1": "t9_0_1"}))[name]
