"""The token of this node: got by joining, kept in a file that only its owner can read, and renewed before it ends.

All workers of a machine that were given the same token share the file. Decision 0082 has the reasons.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from aaiclick.orchestration.coordinator.http.protocol import GivenToken

log = logging.getLogger("aaiclick")

RENEW_FROM = 2 / 3
"""The part of its life after which a token is renewed."""


class StoredToken(msgspec.Struct):
    """A token as it is in the file; `got_at` is the wall clock's time, which only decides when to renew."""

    text: str
    lives_s: float | None = None
    got_at: float = 0.0


class Credentials:
    """The token that calls are made with. `given` is that of the settings, in whose place a node's may come.

    Safe for threads: the heartbeat has a thread of its own.
    """

    def __init__(self, given: str, directory: Path) -> None:
        self.given = given
        self._file = directory / f"{hashlib.sha256(given.encode()).hexdigest()[:16]}.json"
        self._stored = StoredToken(given)
        self._secret = ""
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """The token of the next call."""
        return self._stored.text

    def load(self) -> bool:
        """Take the token from the file, if there is one; return whether there was."""
        try:
            body = self._file.read_bytes()
        except FileNotFoundError:
            return False
        try:
            self._stored = msgspec.json.decode(body, type=StoredToken)
        except msgspec.DecodeError:
            log.warning("the token in %s cannot be read: it is left out", self._file)
            return False
        return True

    def refresh(self) -> None:
        """Take the token from the file if it is newer than the present one: another process has renewed it."""
        present = self._stored
        if self.load() and self._stored.got_at < present.got_at:
            self._stored = present

    def forget(self) -> None:
        """Use the given token again: the one of the file does not count any more."""
        self._stored = StoredToken(self.given)

    def note_life(self, lives_s: float | None, left_s: float | None) -> None:
        """Note the life of the present token, as the server tells it."""
        spent_s = 0.0 if lives_s is None or left_s is None else lives_s - left_s
        self._stored = StoredToken(self._stored.text, lives_s, time.time() - spent_s)

    def digest(self) -> str:
        """Return the digest of the secret of the next token: the same until that was given."""
        with self._lock:
            self._secret = self._secret or secrets.token_urlsafe(32)
            return hashlib.sha256(self._secret.encode()).hexdigest()

    def due_digest(self) -> str:
        """Return what asks for a renewal, or nothing while it is too early for one."""
        lives_s = self._stored.lives_s
        if lives_s is None or time.time() - self._stored.got_at < RENEW_FROM * lives_s:
            return ""
        return self.digest()

    def take(self, given: GivenToken) -> None:
        """Use a token that was given for the digest from now on, and write it into the file."""
        with self._lock:
            if not self._secret:  # both of two calls were answered
                return
            self._stored = StoredToken(f"aai_{given.id}_{self._secret}", given.lives_s, time.time())
            self._secret = ""
        try:
            self._write()
        except OSError as error:
            log.warning("the token of this node cannot be kept in %s (%s): it has to join anew", self._file, error)

    def _write(self) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = self._file.with_suffix(f".{os.getpid()}")
        with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(msgspec.json.encode(self._stored))
        written.rename(self._file)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process of this machine join with the same token inside the block: one is enough for all."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._file.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
