"""Errors as the API and the pages show them: what happened, where, and what to do."""

from __future__ import annotations

import logging

from flask import Flask, Response, jsonify, render_template, request
from pydantic import JsonValue
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import HTTPException

from app.blobs import DamagedError
from pipelines.trace import TraceError

log = logging.getLogger(__name__)

CODES = {
    400: "bad_request",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected_request",
    422: "invalid",
    429: "too_many",
    500: "internal",
    503: "unavailable",
}


def words(error: Exception) -> str:
    """Return what went wrong with a file, a database or the sandbox, without paths and statements."""
    if isinstance(error, OperationalError):
        return f"the database: {error.orig}"
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


class ApiError(Exception):
    """An answer other than success; ``message`` is fit for a user."""

    def __init__(self, status: int, message: str, *, code: str | None = None, detail: JsonValue = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or CODES.get(status, "error")
        self.detail = detail


def wants_json() -> bool:
    """Say whether the client asked for data: an API path, a ``.json`` twin, or JSON preferred."""
    if request.path.startswith("/api/") or request.path.endswith(".json"):
        return True
    return request.accept_mimetypes.best_match(["text/html", "application/json"]) == "application/json"


def render_error(error: ApiError) -> Response:
    """Return an error as JSON or as a page."""
    if wants_json():
        response = jsonify(error={"code": error.code, "message": error.message, "detail": error.detail})
    else:
        response = _page(error)
    response.status_code = error.status
    response.headers["Cache-Control"] = "no-store"
    return response


def _page(error: ApiError) -> Response:
    try:
        page = render_template("errors/error.html", status=error.status, code=error.code, message=error.message)
    except Exception:  # an error page that fails must not hide the error
        log.exception("the error page failed")
        return Response(error.message + "\n", mimetype="text/plain")
    return Response(page, mimetype="text/html")


def register(app: Flask) -> None:
    """Let every error leave as ``{"error": {...}}`` or as the error page."""

    @app.errorhandler(ApiError)
    def api_error(error: ApiError) -> Response:
        return render_error(error)

    @app.errorhandler(TraceError)
    def trace_error(error: TraceError) -> Response:
        return render_error(ApiError(404, str(error)))

    @app.errorhandler(DamagedError)
    def damaged_error(error: DamagedError) -> Response:
        log.error("%s %s: %s", request.method, request.path, error)
        return render_error(ApiError(500, str(error), code="damaged"))

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> Response:
        status = error.code or 500
        if error.response is not None or status < 400:
            return error.get_response()  # type: ignore[return-value]  # werkzeug's own response class
        answer = render_error(ApiError(status, _MESSAGES.get(status, error.description or error.name)))
        for name, value in error.get_headers():
            if name in ("Allow", "Retry-After"):
                answer.headers[name] = value
        return answer

    @app.errorhandler(OperationalError)
    def database_error(error: OperationalError) -> Response:
        log.exception("database error", exc_info=error)
        return render_error(ApiError(503, "The database did not answer in time. Try again."))

    @app.errorhandler(Exception)
    def unexpected(error: Exception) -> Response:
        log.exception("unhandled error in %s %s", request.method, request.path, exc_info=error)
        return render_error(ApiError(500, "Loupe failed to answer this request. The server's log has the traceback."))


_MESSAGES = {
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    413: "The request is larger than this address takes.",
}
