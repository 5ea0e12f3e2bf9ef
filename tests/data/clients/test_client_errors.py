"""Errors of others, in our words."""

from __future__ import annotations

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from urllib3.exceptions import ProtocolError

from aaiclick.data.clients.client_errors import MESSAGE_MAX, NotTaken, in_our_words, is_unsent, unreachable_is
from aaiclick.errors import DataRefused, DataUnreachable, InputError, ObjectNotFound, StaleObject


def caught(error: BaseException) -> BaseException:
    try:
        with in_our_words():
            raise error
    except BaseException as found:
        return found


def test_a_refusal_keeps_its_code_and_loses_the_noise() -> None:
    told = "Code: 73. DB::Exception: Code: 73. DB::Exception: Unknown format Nope. (UNKNOWN_FORMAT) (version 26.9.1.1)"
    found = caught(DatabaseError(told))
    assert isinstance(found, DataRefused)
    assert str(found) == "ClickHouse refused this (code 73): Unknown format Nope. (UNKNOWN_FORMAT)."


def test_a_refusal_without_a_code_is_one_too() -> None:
    found = caught(RuntimeError("chdb is not in the mood"))
    assert isinstance(found, DataRefused)
    assert found.facts["code"] == 0


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), EOFError(), TimeoutError("slow"), ProtocolError("x")])
def test_what_the_network_says_is_unreachable(error: Exception) -> None:
    assert isinstance(caught(error), DataUnreachable)


def test_what_the_network_said_to_the_library_is_unreachable() -> None:
    error = OperationalError("Error executing HTTP request")
    error.__cause__ = ConnectionRefusedError("refused")
    assert isinstance(caught(error), DataUnreachable)


@pytest.mark.parametrize("cause", [ConnectionRefusedError("refused"), NotTaken("broken pipe")])
def test_what_was_not_taken_may_be_sent_again(cause: Exception) -> None:
    error = OperationalError("Error executing HTTP request")
    error.__cause__ = ProtocolError("Connection aborted.", cause)
    error.__cause__.__cause__ = cause
    assert is_unsent(caught(error))
    assert not is_unsent(caught(ConnectionResetError("reset")))


def test_whoever_knows_more_tells_it() -> None:
    with pytest.raises(DataUnreachable, match="slow") as found, unreachable_is("unsent"):
        raise TimeoutError("slow")
    assert is_unsent(found.value)


def test_a_temporary_table_that_is_gone_belonged_to_a_context_that_has_ended() -> None:
    told = "Code: 60. DB::Exception: Unknown table expression identifier 'c12_3'. (UNKNOWN_TABLE)"
    assert isinstance(caught(DatabaseError(told)), StaleObject)
    assert isinstance(caught(DatabaseError(told.replace("c12_3", "mine"))), DataRefused)


def test_a_table_of_a_run_that_is_gone_is_named() -> None:
    found = caught(DatabaseError("Code: 60. DB::Exception: Unknown table expression identifier 't12_3_1'."))
    assert isinstance(found, ObjectNotFound)
    assert (found.facts["name"], found.facts["hint"]) == ("t12_3_1", "Its table is gone.")


@pytest.mark.parametrize("table", ["p_mine", "p_mine@2", "j7_mine"])
def test_a_table_of_an_object_that_is_gone_is_to_be_opened_anew(table: str) -> None:
    found = caught(DatabaseError(f"Code: 60. DB::Exception: Unknown table expression identifier '{table}'."))
    assert isinstance(found, ObjectNotFound)
    assert found.facts["name"] == table
    assert "open the Object again" in str(found)


@pytest.mark.parametrize(
    "error", [InputError(field="a", value="b", rule="c", hint=""), KeyError("a"), KeyboardInterrupt()]
)
def test_what_is_ours_or_nobodys_stays_as_it_is(error: BaseException) -> None:
    assert caught(error) is error


def test_a_long_message_is_cut_and_says_so() -> None:
    found = caught(DatabaseError("Code: 1. DB::Exception: " + "x" * 10_000))
    assert MESSAGE_MAX < len(str(found)) < MESSAGE_MAX + 100
    assert "…" in str(found)
