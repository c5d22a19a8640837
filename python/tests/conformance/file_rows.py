"""Routes of the in-sandbox API about files, as the daemon and as somebody else."""

from __future__ import annotations

import json
from typing import Any

from conformance.rows import Row
from conformance.shapes import BAD_BODY, BAD_FILE, INFO, MISSING, NO_FILE, nothing


def upload(*parts: tuple[str, str, str]) -> dict[str, Any]:
    """An upload's body, of `(name, filename, content)` each, without any coding around it."""
    head = 'Content-Disposition: form-data; name="{}"; filename="{}"'
    text = "".join(
        f"--b0\r\n{head.format(name, file)}\r\n\r\n{content}\r\n" for name, file, content in parts
    )
    return {
        "raw": f"{text}--b0--\r\n".encode(),
        "headers": {"Content-Type": "multipart/form-data; boundary=b0"},
    }


def metadata(path: str, **fields: Any) -> tuple[str, str, str]:
    return ("metadata", "metadata", json.dumps({"path": path, **fields}))


FILES = [
    Row(
        "GET /files/info",
        "/files/info?path={dir}/digits&path={dir}/sub",
        200,
        shape={
            "{dir}/digits": {**INFO, "size": 10, "mode": 640, "type": "file"},
            "{dir}/sub": {**INFO, "type": "directory"},
        },
    ),
    Row(
        "GET /files/info",
        "/files/info?path={dir}/link",
        200,
        shape={"{dir}/link": {"type": "symlink"}},
    ),
    Row(
        "GET /files/info",
        "/files/info?path={dir}/pipe",
        200,
        shape={"{dir}/pipe": {"type": "other"}},
    ),
    Row("GET /files/info", "/files/info", 400, MISSING),
    Row("GET /files/info", "/files/info?path={dir}/file&path={dir}/none", 404, NO_FILE),
    Row("GET /files/info", "/files/info?path=%00", 400, BAD_FILE),
    Row("GET /files/info", "/files/info?path=" + "x" * 5000, 400, BAD_FILE),
    Row("DELETE /files", "/files?path={dir}/file&path={dir}/none", 200, look=nothing),
    Row("DELETE /files", "/files", 400, MISSING),
    Row("DELETE /files", "/files?path={dir}/sub", 400, BAD_FILE),
    Row(
        "POST /files/mv",
        "/files/mv",
        200,
        body=[{"src": "{dir}/file", "dest": "{dir}/new/deep/file"}],
        look=nothing,
    ),
    Row(
        "POST /files/mv", "/files/mv", 404, NO_FILE, body=[{"src": "{dir}/none", "dest": "{dir}/x"}]
    ),
    Row(
        "POST /files/mv",
        "/files/mv",
        409,
        BAD_FILE,
        body=[{"src": "{dir}/file", "dest": "{dir}/digits"}],
    ),
    Row("POST /files/mv", "/files/mv", 400, BAD_BODY, raw=b'{"src": 1}'),
    Row(
        "POST /files/permissions",
        "/files/permissions",
        200,
        body={"{dir}/file": {"mode": 600, "owner": "root", "group": "root"}},
        look=nothing,
    ),
    Row(
        "POST /files/permissions",
        "/files/permissions",
        404,
        NO_FILE,
        body={"{dir}/none": {"mode": 600}},
    ),
    Row(
        "POST /files/permissions",
        "/files/permissions",
        400,
        BAD_BODY,
        body={"{dir}/file": {"mode": 888}},
    ),
    Row(
        "GET /files/search",
        "/files/search?path={dir}&pattern=*.py",
        200,
        shape=[{**INFO, "path": "{dir}/sub/x.py"}],
    ),
    Row(
        "GET /files/search",
        "/files/search?path={dir}&pattern=sub/**/*.py",
        200,
        shape=[{"path": "{dir}/sub/x.py"}],
    ),
    Row(
        "GET /files/search",
        "/files/search?path={dir}&pattern=nothing",
        200,
        look=lambda it: it.json() == [],
    ),
    Row("GET /files/search", "/files/search", 400, MISSING),
    Row("GET /files/search", "/files/search?path={dir}/none", 404, NO_FILE),
    Row("GET /files/search", "/files/search?path={dir}&pattern=[a", 400, BAD_BODY),
    Row(
        "POST /files/replace",
        "/files/replace",
        200,
        body={"{dir}/file": {"old": "o", "new": "0"}},
        look=nothing,
    ),
    Row(
        "POST /files/replace",
        "/files/replace?verbose=true",
        200,
        body={"{dir}/file": {"old": "o", "new": "0"}},
        shape={"{dir}/file": {"replacedCount": 2}},
    ),
    Row(
        "POST /files/replace",
        "/files/replace",
        400,
        BAD_BODY,
        body={"{dir}/file": {"old": "", "new": "0"}},
    ),
    Row(
        "POST /files/replace",
        "/files/replace",
        404,
        NO_FILE,
        body={"{dir}/none": {"old": "o", "new": "0"}},
    ),
    Row(
        "POST /files/replace",
        "/files/replace",
        400,
        BAD_FILE,
        body={"{dir}/pipe": {"old": "o", "new": "0"}},
    ),
    Row(
        "POST /files/upload",
        "/files/upload",
        200,
        look=nothing,
        **upload(
            metadata("/tmp/conformance/up/a b.txt", mode=600, owner=None),
            ("file", "other", "x\r\n--b"),
        ),
    ),
    Row(
        "POST /files/upload",
        "/files/upload",
        400,
        "INVALID_FILE_CONTENT",
        raw=b"x",
        headers={"Content-Type": "text/plain"},
    ),
    Row(
        "POST /files/upload",
        "/files/upload",
        400,
        "INVALID_FILE_METADATA",
        **upload(("metadata", "metadata", "{"), ("file", "x", "x")),
    ),
    Row("POST /files/upload", "/files/upload", 400, BAD_FILE, **upload(metadata("/tmp/x"))),
    Row("POST /files/upload", "/files/upload", 400, BAD_FILE, **upload(("file", "x", "x"))),
    Row(
        "GET /files/download",
        "/files/download?path={dir}/digits",
        200,
        look=lambda it: (
            it.content == b"0123456789"
            and it.headers["content-type"] == "application/octet-stream"
            and it.headers["content-length"] == "10"
            and it.headers["content-disposition"] == 'attachment; filename="digits"'
        ),
    ),
    Row(
        "GET /files/download",
        "/files/download?path={dir}/digits",
        206,
        headers={"Range": "bytes=2-4"},
        look=lambda it: it.content == b"234" and it.headers["content-range"] == "bytes 2-4/10",
    ),
    Row(
        "GET /files/download",
        "/files/download?path={dir}/digits",
        206,
        headers={"Range": "bytes=-3"},
        look=lambda it: it.content == b"789",
    ),
    Row(
        "GET /files/download",
        "/files/download?path={dir}/digits",
        416,
        BAD_BODY,
        headers={"Range": "bytes=10-"},
    ),
    Row(
        "GET /files/download",
        "/files/download?path={dir}/digits",
        416,
        BAD_BODY,
        headers={"Range": "bytes=x"},
    ),
    Row(
        "GET /files/download",
        "/files/download?path={dir}/file&offset=2&limit=1",
        200,
        look=lambda it: it.text == "two\n" and it.headers["content-type"].startswith("text/plain"),
    ),
    Row(
        "GET /files/download",
        "/files/download?path={dir}/file&offset=2",
        400,
        BAD_BODY,
        headers={"Range": "bytes=0-"},
    ),
    Row("GET /files/download", "/files/download?path={dir}/file&offset=0", 400, BAD_BODY),
    Row("GET /files/download", "/files/download", 400, MISSING),
    Row("GET /files/download", "/files/download?path={dir}/none", 404, NO_FILE),
    Row("GET /files/download", "/files/download?path={dir}/pipe", 400, BAD_FILE),
    Row("GET /files/download", "/files/download?path={dir}/sub", 400, BAD_FILE),
    Row(
        "GET /directories/list",
        "/directories/list?path={dir}",
        200,
        shape=[INFO],
        look=lambda it: (
            [one["path"].rsplit("/", 1)[1] for one in it.json()]
            == ["digits", "file", "link", "pipe", "sub"]
        ),
    ),
    Row(
        "GET /directories/list",
        "/directories/list?path={dir}&depth=2",
        200,
        look=lambda it: it.json()[-1]["path"].endswith("/sub/x.py"),
    ),
    Row(
        "GET /directories/list",
        "/directories/list?path={dir}&depth=0",
        200,
        look=lambda it: it.json() == [],
    ),
    Row("GET /directories/list", "/directories/list?path={dir}&depth=-1", 400, BAD_BODY),
    Row("GET /directories/list", "/directories/list?path={dir}&depth=x", 400, BAD_BODY),
    Row("GET /directories/list", "/directories/list?path={dir}/link", 400, BAD_FILE),
    Row("GET /directories/list", "/directories/list?path={dir}/file", 400, BAD_FILE),
    Row("GET /directories/list", "/directories/list?path={dir}/none", 404, NO_FILE),
    Row("GET /directories/list", "/directories/list", 400, MISSING),
    Row("POST /directories", "/directories", 200, body={"{dir}/a/b": {"mode": 700}}, look=nothing),
    Row("POST /directories", "/directories", 400, BAD_BODY, raw=b"[]"),
    Row("POST /directories", "/directories", 400, BAD_FILE, body={"{dir}/file": {}}),
    Row("DELETE /directories", "/directories?path={dir}/sub&path={dir}/none", 200, look=nothing),
    Row("DELETE /directories", "/directories", 400, MISSING),
]


def as_identity(row: Row) -> Row:
    """The same route as another user; root here, so that it can do the same."""
    return Row(
        route=row.route.replace(" /", " /v1/filesystem/{uid}/{gid}/", 1),
        path=f"/v1/filesystem/0/0{row.path}",
        status=row.status,
        code=row.code,
        shape=row.shape,
        look=row.look,
        body=row.body,
        raw=row.raw,
        headers=row.headers,
    )


IDENTITY = [
    *[as_identity(row) for row in FILES],
    Row(
        "GET /v1/filesystem/{uid}/{gid}/files/info",
        "/v1/filesystem/4294967295/0/files/info?path=/",
        400,
        BAD_BODY,
    ),
    Row(
        "GET /v1/filesystem/{uid}/{gid}/files/info",
        "/v1/filesystem/x/0/files/info?path=/",
        400,
        BAD_BODY,
    ),
    Row(
        "GET /v1/filesystem/{uid}/{gid}/files/download",
        "/v1/filesystem/1000/1000/files/download?path={dir}/digits",
        403,
        BAD_FILE,
    ),
    Row(
        "POST /v1/filesystem/{uid}/{gid}/directories",
        "/v1/filesystem/1000/1000/directories",
        403,
        BAD_FILE,
        body={"/usr/x": {}},
    ),
]
