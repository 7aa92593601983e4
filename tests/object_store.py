"""An object store on this machine that speaks S3, and fails as stores do when a test says so.

Objects are in memory. It answers the requests that pyarrow's file system sends: HEAD, ranges, multipart uploads,
copies, listings and deletions. Signatures are not checked.
"""

from __future__ import annotations

import http.server
import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem, SubTreeFileSystem

BUCKET: Final = "bucket"
PATIENCE_SECONDS: Final = 60.0  # of a client on a busy machine
CHANGED: Final = "Mon, 02 Jun 2025 12:00:00 GMT"
LISTED_CHANGED: Final = "2025-06-02T12:00:00.000Z"


class Failure(Enum):
    """How the content of an object is not given."""

    SLOW_DOWN = auto()  # 503, with the code by which S3 throttles
    DENIED = auto()  # 403
    RESET = auto()  # the connection ends without an answer
    CUT = auto()  # half of the content comes, then the connection ends


class ObjectStore:
    """The objects of one bucket, and the failures to come."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.failed: list[str] = []  # the keys whose content was not given
        self._fails: Callable[[str], Failure | None] = lambda _: None

    def url(self, folder: str) -> str:
        """Return the address of a folder, as a setting has it."""
        options = f"scheme=http&endpoint_override=127.0.0.1:{self._port}&region=us-east-1"
        return f"s3://key:secret@{BUCKET}/{folder}?{options}"

    def files(self, folder: str) -> SubTreeFileSystem:
        """Return a folder as pyarrow has it; each request has one try, where the address has some tens."""
        files = S3FileSystem(
            access_key="key",
            secret_key="secret",  # noqa: S106 - nothing checks it
            endpoint_override=f"127.0.0.1:{self._port}",
            scheme="http",
            region="us-east-1",
            connect_timeout=PATIENCE_SECONDS,
            request_timeout=PATIENCE_SECONDS,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=1),
        )
        return SubTreeFileSystem(f"{BUCKET}/{folder}".rstrip("/"), files)

    def put_folder(self, path: Path, folder: str) -> None:
        """Copy a folder of the disk."""
        for file in path.rglob("*"):
            if file.is_file():
                self.objects[f"{folder}/{file.relative_to(path)}"] = file.read_bytes()

    @contextmanager
    def failing(self, part: str, failure: Failure, *, times: int | None = None) -> Iterator[None]:
        """Give the content of no object whose key has this part; with `times`, only so many times."""
        self.failed.clear()

        def fails(key: str) -> Failure | None:
            is_over = times is not None and len(self.failed) >= times
            return None if is_over or part not in key else failure

        self._fails = fails
        try:
            yield
        finally:
            self._fails = lambda _: None

    def fails(self, key: str) -> Failure | None:
        """Return how the content of a key is to fail now; None: it is given."""
        failure = self._fails(key)
        if failure is not None:
            self.failed.append(key)
        return failure


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start a store, and end it."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.store = ObjectStore(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.store
        finally:
            server.shutdown()
            thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    store: ObjectStore


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: the client acknowledges a second one 40 ms later
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    @property
    def store(self) -> ObjectStore:
        return self.server.store

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")

    @property
    def query(self) -> dict[str, str]:
        pairs = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in pairs.items()}

    def do_HEAD(self) -> None:
        content = self.store.objects.get(self.key, None if self.key else b"")
        if content is None:
            self._answer(HTTPStatus.NOT_FOUND)
        else:
            self._answer(HTTPStatus.OK, length=len(content))

    def do_GET(self) -> None:
        if not self.key:
            self._answer(HTTPStatus.OK, _listing(self.store, self.query))
            return
        content = self.store.objects.get(self.key)
        if content is None:
            self._refuse(HTTPStatus.NOT_FOUND, "NoSuchKey")
            return
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if span is not None:
            end = int(span[2]) + 1 if span[2] else len(content)
            content = content[int(span[1]) : end]
        self._give(content, HTTPStatus.OK if span is None else HTTPStatus.PARTIAL_CONTENT)

    def do_PUT(self) -> None:
        body = self._body()
        source = unquote(self.headers.get("x-amz-copy-source", ""))
        if source:
            self.store.objects[self.key] = self.store.objects[source.split(f"{BUCKET}/", 1)[1]]
            self._answer(HTTPStatus.OK, _document("CopyObjectResult", "<ETag>x</ETag>"))
            return
        if "uploadId" in self.query:
            self.store.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = body
        else:
            self.store.objects[self.key] = body
        self._answer(HTTPStatus.OK)

    def do_POST(self) -> None:
        body = self._body()
        if "uploads" in self.query:
            upload = f"upload-{len(self.store.uploads)}"
            self.store.uploads[upload] = {}
            text = f"<UploadId>{upload}</UploadId>"
            self._answer(HTTPStatus.OK, _document("InitiateMultipartUploadResult", text))
        elif "uploadId" in self.query:
            parts = self.store.uploads[self.query["uploadId"]]
            self.store.objects[self.key] = b"".join(parts[number] for number in sorted(parts))
            self._answer(
                HTTPStatus.OK, _document("CompleteMultipartUploadResult", "<ETag>x</ETag>")
            )
        else:
            for element in ET.fromstring(body).iter():  # noqa: S314 - pyarrow's own
                if element.tag.endswith("Key"):
                    self.store.objects.pop(element.text or "", None)
            self._answer(HTTPStatus.OK, _document("DeleteResult", ""))

    def do_DELETE(self) -> None:
        self.store.objects.pop(self.key, None)
        self._answer(HTTPStatus.NO_CONTENT)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = _unchunked(self.rfile)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_chunked_again = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return _unchunked(io.BytesIO(body)) if is_chunked_again else body

    def _give(self, content: bytes, status: HTTPStatus) -> None:
        match self.store.fails(self.key):
            case None:
                self._answer(status, content)
            case Failure.SLOW_DOWN:
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "SlowDown")
            case Failure.DENIED:
                self._refuse(HTTPStatus.FORBIDDEN, "AccessDenied")
            case Failure.RESET:
                self.close_connection = True
            case Failure.CUT:
                self._answer(status, content[: len(content) // 2], length=len(content))
                self.close_connection = True

    def _refuse(self, status: HTTPStatus, code: str) -> None:
        self._answer(status, _document("Error", f"<Code>{code}</Code><Message>{code}</Message>"))

    def _answer(self, status: HTTPStatus, body: bytes = b"", length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Last-Modified", CHANGED)
        self.send_header("ETag", '"x"')
        self.end_headers()
        self.wfile.write(body)


def _listing(store: ObjectStore, query: dict[str, str]) -> bytes:
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    files, folders = [], dict[str, None]()
    for key in sorted(store.objects):
        if not key.startswith(prefix):
            continue
        head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
        if found:
            folders[f"{prefix}{head}{delimiter}"] = None
        else:
            files.append(key)
    text = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(store.objects[key])}</Size>"
        f"<LastModified>{LISTED_CHANGED}</LastModified></Contents>"
        for key in files
    )
    text += "".join(
        f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders
    )
    count = len(files) + len(folders)
    return _document(
        "ListBucketResult", f"<KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>{text}"
    )


def _unchunked(stream: io.BufferedIOBase) -> bytes:
    """Return a body that comes in chunks, without the trailers after it."""
    body = b""
    while length := int(stream.readline().partition(b";")[0], 16):
        body += stream.read(length)
        stream.readline()
    while stream.readline().strip():
        pass
    return body


def _document(name: str, content: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><{name}>{content}</{name}>'.encode()
