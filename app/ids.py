"""Permalinks: 128 random bits, in 22 characters that need no escaping in a URL."""

from __future__ import annotations

import base64
import re
import secrets

PERMALINK = re.compile(r"[A-Za-z0-9_-]{22}")


def new_permalink() -> str:
    """Return a new id; it never starts with ``-``, which a command line would read as a flag."""
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode("ascii")
        if not text.startswith("-"):
            return text
