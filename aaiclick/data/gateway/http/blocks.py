"""ClickHouse's own compression, for compress=1 and decompress=1: blocks with a checksum, a method and sizes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from struct import Struct

from aaiclick.data.gateway.faults import fault
from aaiclick.data.gateway.http.cityhash import checksum
from aaiclick.data.gateway.http.codecs import LEVEL

try:
    from lz4 import block as lz4
except ImportError:  # see codecs
    lz4 = None
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NONE, LZ4, ZSTD = 0x02, 0x82, 0x90
BLOCK_BYTES = 1 << 20
BLOCK_BYTES_MAX = 1 << 28
"""A block that claims to be larger is refused before it is unpacked."""

_HEAD = Struct("<BII")
_ERRORS: tuple[type[Exception], ...] = (ValueError, zstd.ZstdError, *([lz4.LZ4BlockError] if lz4 else []))
_CHECKSUM_BYTES = 16


class Blocks:
    """Packs an answer into blocks, with the interface of codecs.Compressor."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def add(self, data: bytes) -> bytes:
        self._waiting += data
        packed = b""
        while len(self._waiting) >= BLOCK_BYTES:
            packed += pack(bytes(self._waiting[:BLOCK_BYTES]))
            del self._waiting[:BLOCK_BYTES]
        return packed

    def end(self) -> bytes:
        rest = bytes(self._waiting)
        self._waiting.clear()
        return pack(rest) if rest else b""


def pack(data: bytes) -> bytes:
    """Return data as one block, with LZ4 if that is installed, else with ZSTD."""
    method, packed = (LZ4, lz4.compress(data, store_size=False)) if lz4 else (ZSTD, zstd.compress(data, level=LEVEL))
    block = _HEAD.pack(method, _HEAD.size + len(packed), len(data)) + packed
    return checksum(block) + block


def unpack(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the contents of blocks, which are given in pieces of any size."""
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        while (size := _size_of_first(waiting)) is not None and len(waiting) >= size:
            yield _unpack_one(bytes(waiting[:size]))
            del waiting[:size]
    if waiting:
        raise fault(271, "CANNOT_DECOMPRESS", "The compressed body breaks off.")


def _size_of_first(waiting: bytearray) -> int | None:
    """Return the size of the first block with its checksum; None if its head has not been read yet."""
    if len(waiting) < _CHECKSUM_BYTES + _HEAD.size:
        return None
    _, packed_size, size = _HEAD.unpack_from(waiting, _CHECKSUM_BYTES)
    if not _HEAD.size <= packed_size <= BLOCK_BYTES_MAX or size > BLOCK_BYTES_MAX:
        raise fault(39, "TOO_LARGE_SIZE_COMPRESSED", "Too large size_compressed. Most likely corrupted data.")
    return int(_CHECKSUM_BYTES + packed_size)


def _unpack_one(block: bytes) -> bytes:
    given, block = block[:_CHECKSUM_BYTES], block[_CHECKSUM_BYTES:]
    if checksum(block) != given:
        raise fault(40, "CHECKSUM_DOESNT_MATCH", "Checksum doesn't match: corrupted data.")
    method, _, size = _HEAD.unpack_from(block)
    data = _plain(method, block[_HEAD.size :], size)
    if len(data) != size:
        raise fault(271, "CANNOT_DECOMPRESS", "A block is not as long as it says.")
    return data


def _plain(method: int, packed: bytes, size: int) -> bytes:
    try:
        if method == NONE:
            return packed
        if method == LZ4 and lz4:
            return bytes(lz4.decompress(packed, uncompressed_size=size))
        if method == ZSTD:
            return bytes(zstd.ZstdDecompressor().decompress(packed, max_length=size + 1))
    except _ERRORS as error:
        raise fault(271, "CANNOT_DECOMPRESS", f"Cannot decompress a block: {error}.") from None
    raise fault(432, "UNKNOWN_CODEC", f"Unknown codec family code: {method}.")
