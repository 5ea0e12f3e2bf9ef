"""The hash by which ClickHouse checks its compressed blocks."""

from __future__ import annotations

import pytest

from aaiclick.data.gateway.http.cityhash import checksum


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "2b9ac064fc9df03d291ee592c340b53c"),
        (1, "2264de61ab714ba07039e237496868f7"),
        (3, "120189db9fbef0bece718d2fc2d9d57c"),
        (4, "e5fed02649a8792480f33a7f89fe6b40"),
        (7, "0902d345521cbae55012191c6f5a739e"),
        (8, "6a205dcdbcfd9741514f8cb80c20f311"),
        (9, "c66e257dd587b2ba2ebe0a611bae7753"),
        (15, "70b82fc5d4dcffcb2ac068d30d719d2f"),
        (16, "398f79532cd845208dc1c381faa61715"),
        (17, "b787a3cb019ddc8782e89bed003c99d8"),
        (31, "9af416b270162060233aebccefcae636"),
        (32, "f75b9ef13925755da2ea3b2136b75dd4"),
        (33, "00864b900ebab1e4a4af56a86afa15df"),
        (127, "d0c116114fc0303313900e402fe48204"),
        (143, "b9d9977357fd5a90301fe9003cbaf154"),
        (144, "770a70252d08ff829dfbe631876ed0c2"),
        (145, "52563b226bd9d3734a81680ce9503a57"),
        (176, "8f2ca64908a03009a131094f507a6e14"),
        (271, "7c2ea6ca15eab199575f9299868abe0c"),
        (272, "8bc29fd612badcccfd5c7524eccc8d77"),
        (300, "1355530aeca9ba06999ed5387ce48026"),
        (4097, "5e8096f71a2c6758bb003ef9b7da5e57"),
    ],
)
def test_it_is_that_of_version_1_0_2(size: int, expected: str) -> None:
    """The numbers are of the library of the same version in C++."""
    data = bytes((at * at * 7 + at) & 255 for at in range(size))
    assert checksum(data).hex() == expected
