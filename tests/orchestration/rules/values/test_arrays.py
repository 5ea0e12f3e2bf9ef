"""Numbers and arrays of numpy come back with their dtype, shape, order and every byte."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from aaiclick.errors import ValueNotPortable, ValueTooLarge
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_value

MB = 1_000_000
PADDED = np.dtype([("a", "<i4"), ("b", ">f8", (2,)), ("c", [("d", "<U3")])], align=True)
SCALARS = [
    np.float64(0.1),
    np.float32(0.1),
    np.float16(-0.0),
    np.float64("nan"),
    np.float32("-inf"),
    np.longdouble("1.1"),
    np.int8(-1),
    np.int64(2**62),
    np.uint64(2**64 - 1),
    np.longlong(5),
    np.bool_(True),
    np.complex64(1 + 2j),
    np.str_("a\0b\0"),
    np.str_("\ud800"),
    np.bytes_(b"a\0"),
    np.datetime64("2026-01-01T00:00:00.123456789"),
    np.datetime64("NaT"),
    np.timedelta64(-5, "D"),
    np.zeros(1, PADDED)[0],
]
ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(10)[::3],
    np.arange(6, dtype=">i2").reshape(3, 2).T,
    np.array(5),
    np.zeros((0, 3)),
    np.zeros((2, 0), dtype="U5"),
    np.array(["a", "bc\0d"]),
    np.array([b"x", b"yz"]),
    np.array([True, False]),
    np.array(["2026-01-01", "NaT"], dtype="datetime64[s]"),
    np.array([1, 2], dtype="longlong"),
    np.array([1.5, np.nan, -0.0, np.inf], dtype=np.float16),
    np.ones(3, PADDED),
    np.zeros(2, "V5"),
]


def there_and_back(value: object) -> Any:
    return decode_value(encode_value(value, bytes_max=MB))


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: type(value).__name__)
def test_a_scalar_comes_back_as_it_was(value: Any) -> None:
    for came in (there_and_back(value), there_and_back({"x": [value]})["x"][0]):
        assert type(came) is type(value)
        assert came.dtype == value.dtype
        assert came.tobytes() == value.tobytes()
        assert str(came) == str(value)


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: f"{value.dtype}{value.shape}")
def test_an_array_comes_back_as_it_was(value: Any) -> None:
    came = there_and_back((value,))[0]
    assert type(came) is np.ndarray
    assert (came.dtype, came.shape, came.tobytes()) == (value.dtype, value.shape, value.tobytes())
    assert came.dtype.char == value.dtype.char
    assert came.flags.f_contiguous == (value.flags.f_contiguous or (came.flags.c_contiguous and came.ndim < 2))
    assert came.flags.writeable
    assert came.flags.owndata


def test_a_number_can_be_a_key_and_in_a_set() -> None:
    assert {type(key) for key in there_and_back({np.int64(1): "x"})} == {np.int64}
    assert {type(each) for each in there_and_back({np.float32(1)})} == {np.float32}


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]),
        np.array([1, None]),
        np.zeros(1, [("a", object)]),
        np.array(["x"], dtype=np.dtypes.StringDType()),
        np.matrix([[1]]),
        np.ma.masked_array([1], mask=[True]),
        np.zeros(2, np.dtype({"names": ["a", "b"], "formats": ["<i4", "<i4"], "offsets": [0, 2]})),
    ],
    ids=["object", "mixed", "object field", "strings", "matrix", "masked", "overlapping"],
)
def test_what_has_no_bytes_of_its_own_is_refused_at_its_place(value: Any) -> None:
    with pytest.raises(ValueNotPortable, match=r"^value\.x\[0\]: "):
        encode_value({"x": [value]}, bytes_max=MB)


def test_a_large_array_is_refused_before_it_is_written() -> None:
    with pytest.raises(ValueTooLarge):
        encode_value([np.broadcast_to(np.float64(1), (10**12,))], bytes_max=MB)


def test_numpy_is_not_loaded_for_values_that_are_not_of_it() -> None:
    lines = """
import sys
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_value
assert decode_value(encode_value({"a": (1, {2})}, bytes_max=10**6)) == {"a": (1, {2})}
sys.exit(bool({"numpy", "pydantic", "msgspec", "pyarrow"} & sys.modules.keys()))
"""
    assert subprocess.run([sys.executable, "-c", lines], check=False).returncode == 0
