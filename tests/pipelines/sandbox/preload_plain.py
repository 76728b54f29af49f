"""A preload module for the tests: nothing to warm, small functions to call."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def nothing(request: Any) -> None:
    """Return at once."""


def echo(request: Any) -> None:
    Path("result.json").write_text(json.dumps(request))
    print("to stdout")
    print("to stderr", file=sys.stderr)


def spin(request: Any) -> None:
    while True:
        time.sleep(1 if request.get("sleep") else 0)
