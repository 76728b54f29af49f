"""The log of ``ptxas -v``: resources of a kernel, and errors tied to lines of the PTX."""

from __future__ import annotations

import re

from pipelines.trace import Diagnostic, Resources

_USED = re.compile(r"Used (\d{1,6}) registers")
_BARRIERS = re.compile(r"used (\d{1,4}) barriers")
_SHARED = re.compile(r"(\d{1,9}) bytes smem")
_CONSTANT = re.compile(r"(\d{1,9}) bytes cmem\[0\]")
_STACK = re.compile(r"(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_ERROR = re.compile(
    r"^ptxas[\w-]* \S*, line (?P<line>\d{1,9}); (?P<severity>error|warning|fatal)\s*: (?P<message>.*)$",
    re.MULTILINE,
)
_TEMPORARY = re.compile(r"/?(?:[\w.-]+/)*tmp[\w]{4,}\.ptx")
_VARYING = re.compile(r"^.*Compile time = .*\n?", re.MULTILINE)


def normalize_log(text: str) -> str:
    """Take out what varies from run to run: the temporary file's name and the compile time."""
    return _VARYING.sub("", _TEMPORARY.sub("kernel.ptx", text)).strip("\n")


def parse_resources(log: str, shared: int | None = None) -> Resources | None:
    """Read registers, spills, stack and barriers; ``shared`` is what the compiler allocates at launch, in bytes.

    Returns None where the log tells of no kernel.
    """
    used = _USED.search(log)
    if not used:
        return None
    stack = _STACK.search(log)
    return Resources(
        registers=int(used[1]),
        stack=int(stack[1]) if stack else None,
        spill_stores=int(stack[2]) if stack else None,
        spill_loads=int(stack[3]) if stack else None,
        barriers=_number(_BARRIERS, log),
        shared=shared if shared is not None else _number(_SHARED, log),
        constant=_number(_CONSTANT, log),
    )


def parse_errors(log: str) -> list[Diagnostic]:
    """Return ptxas's errors, at their lines of the PTX."""
    return [
        Diagnostic(
            severity="warning" if match["severity"] == "warning" else "error",
            message=match["message"].strip(),
            file="kernel.ptx",
            line=int(match["line"]),
            address="ptx",
        )
        for match in _ERROR.finditer(log)
    ][:1000]


def _number(pattern: re.Pattern[str], log: str) -> int | None:
    match = pattern.search(log)
    return int(match[1]) if match else None
