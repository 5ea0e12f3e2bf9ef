"""Compression and decompression of HTTP bodies, in pieces of bounded size."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from aaiclick.data.gateway.faults import fault

try:
    from lz4 import frame as lz4
except ImportError:  # clickhouse-connect installs it only up to Python 3.13
    lz4 = None
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE_BYTES = 1 << 22
"""The most that is unpacked at once: a few bytes may unpack to very many."""

GZIP_WINDOW = 31
LEVEL = 1
"""The fastest compression is enough, as clients are on this machine."""


class _Inflater:
    """A decompressor of zlib with the interface of the other libraries' ones."""

    def __init__(self, window: int) -> None:
        self._zlib = zlib.decompressobj(window)
        self.eof = False
        self.needs_input = True
        self.unused_data = b""
        self._tail = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        unpacked = self._zlib.decompress(self._tail + data, max_length)
        self._tail = self._zlib.unconsumed_tail
        self.eof, self.unused_data = self._zlib.eof, self._zlib.unused_data
        self.needs_input = not self._tail and len(unpacked) < max_length
        return unpacked


DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    **({"lz4": lz4.LZ4FrameDecompressor} if lz4 else {}),
    "zstd": zstd.ZstdDecompressor,
    "gzip": lambda: _Inflater(GZIP_WINDOW),
    "deflate": lambda: _Inflater(zlib.MAX_WBITS),
}


def decompress(encoding: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack a body, which may be packed in several frames, one after the other."""
    if encoding in ("", "identity"):
        yield from pieces
        return
    if encoding not in DECOMPRESSORS:
        raise fault(89, "UNKNOWN_COMPRESSION_METHOD", f"Unknown compression method {encoding!r}.")
    make = DECOMPRESSORS[encoding]
    frame = None
    for piece in pieces:
        data = piece
        while data or (frame is not None and not frame.needs_input):
            frame = frame or make()
            yield _unpack(frame, data)
            data = frame.unused_data or b"" if frame.eof else b""
            frame = None if frame.eof else frame
    if frame is not None:
        raise fault(271, "CANNOT_DECOMPRESS", "The compressed body breaks off.")


def _unpack(frame: Any, data: bytes) -> bytes:
    try:
        unpacked: bytes = frame.decompress(data, max_length=PIECE_BYTES)
    except (RuntimeError, ValueError, zlib.error, zstd.ZstdError) as error:
        raise fault(271, "CANNOT_DECOMPRESS", f"Cannot decompress the body: {error}.") from None
    return unpacked


class Plain:
    """A Compressor that changes nothing."""

    def add(self, data: bytes) -> bytes:
        return data

    def end(self) -> bytes:
        return b""


class Lz4:
    def __init__(self) -> None:
        self._frame = lz4.LZ4FrameCompressor()
        self._begin: bytes = self._frame.begin()

    def add(self, data: bytes) -> bytes:
        packed: bytes = self._frame.compress(data)
        return self._begun() + packed

    def end(self) -> bytes:
        packed: bytes = self._frame.flush()
        return self._begun() + packed

    def _begun(self) -> bytes:
        """Return the head of the frame, once."""
        begin, self._begin = self._begin, b""
        return begin


class Stream:
    """A Compressor that uses zlib or zstd."""

    def __init__(self, packer: Any) -> None:
        self._packer = packer

    def add(self, data: bytes) -> bytes:
        packed: bytes = self._packer.compress(data)
        return packed

    def end(self) -> bytes:
        packed: bytes = self._packer.flush()
        return packed


class Compressor(Protocol):
    """Packs an answer, piece by piece."""

    def add(self, data: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class Both:
    """One compression inside of another."""

    def __init__(self, inner: Compressor, outer: Compressor) -> None:
        self._inner, self._outer = inner, outer

    def add(self, data: bytes) -> bytes:
        return self._outer.add(self._inner.add(data))

    def end(self) -> bytes:
        return self._outer.add(self._inner.end()) + self._outer.end()


COMPRESSORS: dict[str, Callable[[], Compressor]] = {
    **({"lz4": Lz4} if lz4 else {}),
    "zstd": lambda: Stream(zstd.ZstdCompressor(level=LEVEL)),
    "gzip": lambda: Stream(zlib.compressobj(LEVEL, wbits=GZIP_WINDOW)),
    "deflate": lambda: Stream(zlib.compressobj(LEVEL)),
}


def choose(accepted: str) -> str:
    """Return the compression to answer with, of those that a client accepts; an empty text if there is none."""
    wishes = {wish.partition(";")[0].strip() for wish in accepted.lower().split(",")}
    return next((name for name in COMPRESSORS if name in wishes), "")


def compressor(name: str) -> Compressor:
    """Return a new compressor of this name; without a name, one that changes nothing."""
    return COMPRESSORS[name]() if name else Plain()
