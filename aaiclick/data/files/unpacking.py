"""Unpacks what was fetched into memory, by the ending of its address or as requested."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from io import BytesIO
from typing import IO, Any
from urllib.parse import urlsplit

from aaiclick.data.files.redirects import FETCHED_BYTES_MAX, too_large
from aaiclick.errors import InputError
from aaiclick.urls import mask_url, shown

_OF_ARROW = {"zst": "zstd", "lz4": "lz4"}
PACKINGS = ("gz", "bz2", "xz", *_OF_ARROW)


def unpacked(content: bytes, url: str, packing: str) -> bytes:
    """Return the content unpacked; "auto" tells the packing by the ending of the address."""
    if packing == "auto":
        packing = os.path.splitext(urlsplit(url).path.lower())[1].removeprefix(".")
    if packing not in PACKINGS:
        return content
    try:
        with _opened(BytesIO(content), packing) as stream:
            found: bytes = stream.read(FETCHED_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:  # Arrow's errors are OSErrors too
        rule = f"it cannot be unpacked as {packing}: {shown(str(error))}"
        raise InputError(
            field="url", value=shown(mask_url(url)), rule=rule, hint="Give options={'compression': …}."
        ) from None
    if len(found) > FETCHED_BYTES_MAX:
        raise too_large(url)
    return found


def _opened(file: IO[bytes], packing: str) -> Any:
    import pyarrow as pa  # here, to keep start-up light

    match packing:
        case "gz":
            return gzip.GzipFile(fileobj=file)
        case "bz2":
            return bz2.BZ2File(file)
        case "xz":
            return lzma.LZMAFile(file)
    return pa.CompressedInputStream(pa.PythonFile(file, "r"), _OF_ARROW[packing])
