"""ClickHouse's own compression."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.http import blocks
from aaiclick.data.gateway.http.blocks import Blocks, pack, unpack
from aaiclick.data.gateway.http.cityhash import checksum
from tests.data.gateway.conftest import Ask

TEXT = b"".join(b"%d\n" % number for number in range(20_000))


def code_of(*pieces: bytes) -> int:
    with pytest.raises(Fault) as refused:
        list(unpack(iter(pieces)))
    return refused.value.code


@pytest.mark.parametrize("codec", ["LZ4", "ZSTD", "NONE"])
def test_what_the_engine_itself_packed_is_understood(engine: Engine, codec: str) -> None:
    """The files of a table hold such blocks."""
    wide = "SETTINGS min_bytes_for_wide_part = 0, min_rows_for_wide_part = 0"
    with engine.connection() as connection:
        connection.query(f"CREATE TABLE t (a UInt64 CODEC({codec})) ENGINE = MergeTree ORDER BY tuple() {wide}")
        connection.query("INSERT INTO t SELECT number FROM numbers(20000)")
    (file,) = Path(engine.directory).rglob("a.bin")
    found = b"".join(unpack(iter([file.read_bytes()])))
    assert found == b"".join(number.to_bytes(8, "little") for number in range(20_000))


@pytest.mark.parametrize("lz4", [True, False])
def test_what_is_packed_is_unpacked_in_whatever_pieces_it_comes(monkeypatch: pytest.MonkeyPatch, lz4: bool) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 10_000)
    if not lz4:  # as on a Python that it does not know
        monkeypatch.setattr(blocks, "lz4", None)
    packer = Blocks()
    packed = packer.add(TEXT[:15_000]) + packer.add(TEXT[15_000:]) + packer.end()
    assert packer.end() == b""
    assert b"".join(unpack(packed[at : at + 777] for at in range(0, len(packed), 777))) == TEXT


def test_what_is_damaged_is_refused() -> None:
    packed = pack(b"SELECT 1")
    assert code_of(packed[:-1]) == 271
    assert code_of(packed[:-1] + b"x") == 40
    body = b"\x77" + packed[17:]
    assert code_of(checksum(body) + body) == 432
    body = packed[16:21] + (1000).to_bytes(4, "little") + packed[25:]
    assert code_of(checksum(body) + body) == 271
    body = packed[16:21] + b"\xff\xff\xff\xff" + packed[25:]
    assert code_of(checksum(body) + body) == 39


def test_a_client_may_ask_for_it(ask: Ask) -> None:
    assert b"".join(unpack(iter([ask("SELECT 1", compress=1).body]))) == b"1\n"
    said = ask("SELECT number FROM numbers(500000)", compress=1)
    assert said.headers["transfer-encoding"] == "chunked"
    assert b"".join(unpack(iter([said.body]))).count(b"\n") == 500_000
    assert ask("SELECT 1 WHERE 0", compress=1).body == b""


def test_a_client_may_send_it(ask: Ask) -> None:
    ask("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    assert ask("INSERT INTO t FORMAT TSV", pack(TEXT), decompress=1).status == 200
    assert ask(pack(b"SELECT count() FROM t"), decompress=1).body == b"20000\n"
    assert ask(b"SELECT 1", decompress=1).code == 271
