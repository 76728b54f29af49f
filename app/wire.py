"""How bodies travel: zstd or gzip where the client takes it, validators, and cache lifetimes."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import zstandard
from flask import Response, request

Encoding = Literal["zstd", "gzip", "identity"]

SMALL = 1024
# Browsers refuse zstd windows above 8 MB; level 3 stays below.
ZSTD_LEVEL = 3
GZIP_LEVEL = 6

IMMUTABLE = "private, max-age=31536000, immutable"
REVALIDATE = "private, no-cache"


def accepted() -> Encoding:
    """Return the best encoding that the client takes."""
    offered = request.accept_encodings
    if offered.quality("zstd") > 0:
        return "zstd"
    return "gzip" if offered.quality("gzip") > 0 else "identity"


def tag(data: str | bytes) -> str:
    """Return a validator for what is made from ``data``."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:32]


def encode(data: bytes, encoding: Encoding) -> bytes:
    """Compress a body."""
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(data)
    if encoding == "gzip":
        return gzip.compress(data, GZIP_LEVEL, mtime=0)
    return data


def compress(response: Response) -> Response:
    """Compress a page or a JSON answer that is made for one request."""
    kinds = ("text/html", "application/json")
    if response.mimetype not in kinds or response.is_streamed or response.status_code == 304:
        return response
    if "Content-Encoding" in response.headers or "ETag" in response.headers:
        return response
    response.vary.add("Accept-Encoding")
    data, encoding = response.get_data(), accepted()
    if len(data) >= SMALL and encoding != "identity":
        response.set_data(encode(data, encoding))
        response.headers["Content-Encoding"] = encoding
    return response


@dataclass(frozen=True)
class Packed:
    """A body that is served many times: each encoding is made once."""

    etag: str
    mimetype: str
    data: bytes
    _encoded: dict[Encoding, bytes] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, mimetype: str, data: bytes) -> Packed:
        """Pack a body; its validator is its hash."""
        return cls(tag(data), mimetype, data)

    def encoded(self, encoding: Encoding) -> bytes:
        """Return the body in an encoding."""
        if encoding not in self._encoded:
            self._encoded[encoding] = encode(self.data, encoding)
        return self._encoded[encoding]

    def response(self, cache_control: str) -> Response:
        """Answer the current request with this body, or with 304 where the client has it."""
        return send(self.etag, self.mimetype, self.encoded, cache_control, small=len(self.data) < SMALL)


def send(
    etag: str,
    mimetype: str,
    body: Callable[[Encoding], bytes],
    cache_control: str,
    *,
    small: bool = False,
) -> Response:
    """Answer with a body that is only made when the client does not have it."""
    encoding: Encoding = "identity" if small else accepted()
    tag = f"{etag}-{encoding}"
    if request.if_none_match.contains(tag):
        response = Response(status=304)
    else:
        response = Response(body(encoding), mimetype=mimetype)
        if encoding != "identity":
            response.headers["Content-Encoding"] = encoding
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = cache_control
    response.set_etag(tag)
    return response
