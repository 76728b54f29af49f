"""The ``loupe`` command."""

from __future__ import annotations

from app.cli.main import main

__all__ = ["main"]
