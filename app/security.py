"""What keeps other web pages out: allowed Host names, Origin checks on changes, and response headers."""

from __future__ import annotations

import secrets
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Flask, Response, request

from app.config import Settings
from app.errors import ApiError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Random, so that no text of a trace can contain it.
_NONCE_SLOT = f"nonce-{secrets.token_urlsafe(16)}"

PORTS = {"http": 80, "https": 443}
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def allowed_names(settings: Settings) -> frozenset[str]:
    """Return the host names that requests may be addressed to; ports are free, since they are forwarded."""
    names = set(LOOPBACK) | {name.lower() for name in settings.allowed_hosts}
    if not _is_wildcard(settings.host):
        names.add(settings.host.lower())
    return frozenset(names)


def host_name(netloc: str) -> str | None:
    """Return the name in ``name:port``, in lower case and without brackets, or None for what is no host."""
    try:
        parts = urlsplit(f"//{netloc}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return name if name and parts.netloc == netloc and "@" not in netloc else None


def parse_origin(origin: str) -> tuple[str, str, int] | None:
    """Return scheme, name and port of an origin, or None for what is none (so that nothing equals it)."""
    scheme, separator, netloc = origin.lower().partition("://")
    name = host_name(netloc)
    if not separator or scheme not in PORTS or name is None:
        return None
    return scheme, name, urlsplit(f"//{netloc}").port or PORTS[scheme]


def csp_nonce() -> str:
    """Return what stands in pages for the nonce of style elements (CodeMirror makes one).

    A page may be kept and sent again; each response gets a nonce of its own in its place.
    """
    return _NONCE_SLOT


def register(app: Flask, settings: Settings) -> None:
    """Check every request before its view, and give every response its headers."""
    names = allowed_names(settings)

    @app.before_request
    def check() -> None:
        check_host(names)
        if request.method not in SAFE_METHODS:
            check_origin()

    @app.after_request
    def protect(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Content-Security-Policy", _policy(_fill_nonce(response)))
        return response

    app.jinja_env.globals["csp_nonce"] = csp_nonce


def check_host(names: frozenset[str]) -> None:
    """Refuse a request to a name that is not ours: a page whose DNS was pointed at this machine sends one."""
    name = host_name(request.host)
    if name not in names:
        raise ApiError(
            421,
            f"Loupe does not answer for the host {request.host!r}. Name it in LOUPE_ALLOWED_HOSTS if it should.",
        )


def check_origin() -> None:
    """Refuse a change that another origin's page asks for. Clients that are no browsers send neither header."""
    origin = request.headers.get("Origin")
    if origin is not None:
        if parse_origin(origin) != parse_origin(f"{request.scheme}://{request.host}"):
            raise ApiError(403, f"A page of {origin[:200]} may not change anything here.")
    elif request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        raise ApiError(403, "A page of another site may not change anything here.")


def _fill_nonce(response: Response) -> str | None:
    """Put a new nonce into a page that asks for one; return it."""
    if response.mimetype != "text/html" or response.is_streamed:
        return None
    page = response.get_data()
    slot = _NONCE_SLOT.encode()
    if slot not in page:
        return None
    nonce = secrets.token_urlsafe(16)
    response.set_data(page.replace(slot, nonce.encode()))
    return nonce


def _policy(nonce: str | None) -> str:
    style = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
    return (
        f"default-src 'self'; style-src {style}; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )


def _is_wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
