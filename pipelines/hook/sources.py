"""Where a kernel's text is, and which folders of this machine its paths go through."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

MAX_FILES = 32
MAX_SOURCE = 1 << 20

_LOCATION = re.compile(rb'loc\("((?:[^"\\\n]|\\.){1,1000})":\d')


def file_of(function: Any) -> str:
    """Return the file that a kernel is in, by the name that its code has."""
    return str(function.fn.__code__.co_filename)


def text_of(function: Any) -> str:
    """Return the text of the kernel's file; where there is none, the kernel's own, at its lines."""
    file = file_of(function)
    text = _read(file)
    if text is not None:
        return text
    lines: list[str] = linecache.getlines(file)
    if lines:
        return "".join(lines)
    first = int(function.fn.__code__.co_firstlineno)
    raw = getattr(function, "raw_src", None) or [function.src]
    return "\n" * (first - 1) + "".join(map(str, raw))


def _read(file: str) -> str | None:
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MAX_SOURCE + 1)
    except (OSError, ValueError):
        return None
    return data.decode("utf-8", errors="replace") if len(data) <= MAX_SOURCE else None


def others(ir: str, own: str, triton: str) -> dict[str, str]:
    """Return the texts of the other files that an IR's locations name, by their paths; Triton's own are left out."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(_LOCATION.findall(ir.encode())):
        path = _unescaped(name)
        if path == own or path in found or path.startswith(triton + os.sep):
            continue
        text = _read(path)
        if text is not None:
            found[path] = text
        if len(found) == MAX_FILES:
            break
    return found


def _unescaped(name: bytes) -> str:
    """Read MLIR's string: a backslash, then two hexadecimal digits or the character itself."""
    plain = re.sub(rb"\\([0-9A-Fa-f]{2}|.)", lambda m: bytes.fromhex(m[1].decode()) if len(m[1]) == 2 else m[1], name)
    return plain.decode("utf-8", errors="surrogateescape")


def roots(triton: str, file: str) -> list[tuple[str, str]]:
    """Return the folders that paths of this machine begin with, each with what stands for it, the longest first.

    What is below the program's own folder, or the current one, is named from there.
    """
    found: dict[str, str] = {}

    def add(folder: str | None, shown: str) -> None:
        path = os.path.abspath(folder) if folder else ""  # noqa: PTH100 - links stay as the program wrote them
        if len(path) > 1:
            found.setdefault(path, shown)

    add(triton, "<triton>")
    for entry in (*sys.path, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        if entry.endswith(("site-packages", "dist-packages")):
            add(entry, "<site-packages>")
    for name in ("stdlib", "platstdlib"):
        add(sysconfig.get_path(name), "<python>")
    program = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-m") else ""
    add(os.path.dirname(os.path.abspath(program)) if program else None, "")  # noqa: PTH100, PTH120 - as above
    add(os.getcwd(), "")  # noqa: PTH109 - as above
    for entry in sys.path:
        add(entry, "<path>")
    add(sys.prefix, "<python>")
    add(sys.base_prefix, "<python>")
    home = os.path.expanduser("~")  # noqa: PTH111 - it never fails
    add(home if home != "~" else None, "<home>")
    if os.path.isabs(file) and not any(file.startswith(root + os.sep) for root, at in found.items() if at != "<home>"):  # noqa: PTH117 - as above
        add(os.path.dirname(file), "<elsewhere>")  # noqa: PTH120 - as above
    return sorted(found.items(), key=lambda item: -len(item[0]))
