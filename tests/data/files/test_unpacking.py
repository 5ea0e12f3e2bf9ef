"""What was fetched is unpacked by the ending of its address, within bounds."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable

import pyarrow as pa
import pytest

from aaiclick.data.files import unpacking
from aaiclick.data.files.unpacking import unpacked
from aaiclick.errors import InputError

TEXT = b"a,b\n1,x\n" * 100


def of_arrow(codec: str) -> Callable[[bytes], bytes]:
    def pack(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(content)
        return sink.getvalue().to_pybytes()

    return pack


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": of_arrow("zstd"),
    "lz4": of_arrow("lz4"),
}


@pytest.mark.parametrize("packing", PACK)
def test_what_is_packed_comes_back(packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = PACK[packing](TEXT)
    assert unpacked(content, f"http://h/r.csv.{packing}?v=1", "auto") == TEXT
    assert unpacked(content, "http://h/r.csv", packing) == TEXT
    assert unpacked(content, f"http://h/r.csv.{packing}", "none") == content
    for broken in (content[:-9], b"nothing of the kind"):
        with pytest.raises(InputError, match="cannot be unpacked"):
            unpacked(broken, "http://ann:secret@h/r.csv", packing)
    monkeypatch.setattr(unpacking, "FETCHED_BYTES_MAX", len(TEXT) - 1)
    with pytest.raises(InputError, match="unpacked too"):
        unpacked(content, "http://h/r.csv", packing)


def test_what_is_not_packed_stays() -> None:
    assert unpacked(TEXT, "http://h/r.csv", "auto") == TEXT
