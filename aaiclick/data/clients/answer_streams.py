"""Answers that are read while they arrive: one that breaks off raises the error of ClickHouse that stands at its end.

ClickHouse and the gateway send rows before the query has ended. If it fails then, the status has been sent: the error
comes after the rows, between marks, and the connection ends. clickhouse-connect looks for it in the answers that it
understands itself, and not in those that it hands on: of Arrow, and of files.
"""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickhouse_connect.driver.client import Client

TAIL_BYTES = 1 << 16
"""So much of what was read is looked through for the error."""


def with_errors_in_streams(client: Client) -> Client:
    """Return a client over HTTP whose raw streams, and what it makes of them, raise the error that ends them."""
    plain: Any = client.raw_stream
    setattr(client, "raw_stream", partial(_stream, plain))  # noqa: B010 (mypy refuses to assign to a method)
    return client


def _stream(plain: Callable[..., Any], *words: Any, **options: Any) -> AnswerStream:
    return AnswerStream(plain(*words, **options))


class AnswerStream(io.RawIOBase):
    """A response of urllib3, as a file."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self._response = response
        self._tail = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes; raise what ClickHouse says if the answer breaks off, else the error of the network."""
        try:
            piece: bytes = self._response.read(None if size is None or size < 0 else size)
        except Exception as error:
            self._look_at(getattr(error.__cause__ or error.__context__, "partial", b""))  # of http.client
            if (told := self._told()) is not None:
                from clickhouse_connect.driver.exceptions import DatabaseError  # here, to keep start-up light

                raise DatabaseError(told) from error
            raise
        self._look_at(piece)
        return piece

    def _look_at(self, piece: bytes) -> None:
        self._tail = piece[-TAIL_BYTES:] if len(piece) >= TAIL_BYTES else (self._tail + piece)[-TAIL_BYTES:]

    def _told(self) -> str | None:
        """Return the error at the end of what was read; without a tag, as older servers do, none is looked for."""
        from clickhouse_connect.driver.transform import extract_exception_with_tag  # here, to keep start-up light

        return extract_exception_with_tag(self._tail, self._response.headers.get("X-ClickHouse-Exception-Tag", ""))

    def close(self) -> None:
        self._response.close()
        super().close()
