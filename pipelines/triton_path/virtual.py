"""Names that are the same on every machine: what stands for paths in IR, in options and in messages."""

from __future__ import annotations

import functools
import gc
import os
import re
import sys
from pathlib import Path
from typing import Any

import triton
from triton.runtime.jit import JITCallable, JITFunction, get_full_name

from pipelines.kernels.package import module_name
from pipelines.triton_path import slot

TRITON_ROOT = str(Path(triton.__file__).parent)
PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
# Where libraries are installed, an inner folder before one that it lies in.
SITES = tuple(sorted({p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")}, key=len)[::-1])

MAX_MESSAGE = 20_000
MAX_NAME = 500

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class KernelText(str):
    """A function's source that knows its function: errors carry the text, and two functions may have the same."""

    function: JITCallable


def virtual_path(name: str) -> str:
    """Return a file's name as it appears in IR.

    Triton's own are under ``<triton>``, other libraries' under ``<site>``, the source's are as they are.
    """
    if name.startswith(TRITON_ROOT + os.sep):
        return "<triton>" + name[len(TRITON_ROOT) :]
    site = next((site for site in SITES if name.startswith(site + os.sep)), None)
    return "<site>" + name[len(site) :] if site else name


def virtual(value: Any) -> Any:
    """Return an option's value with Triton's own paths virtual, also inside tuples."""
    if isinstance(value, str):
        return virtual_path(value)
    return tuple(virtual(item) for item in value) if isinstance(value, tuple) else value


def clean(text: str) -> str:
    """Take the server's paths and addresses out of a text, and what JSON cannot carry; bound its length."""
    for path, shown in _roots(str(slot.directory())):
        text = path.sub(shown, text)
    text = _ADDRESS.sub("", text).encode("utf-8", errors="backslashreplace").decode()
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + " ..."


def short(text: object) -> str:
    """Return a name that fits a record's name."""
    return clean(str(text))[:MAX_NAME]


@functools.cache
def _roots(directory: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the paths to hide, an inner one before what it lies in."""
    roots = {sys.base_prefix: "<python>", sys.prefix: "<python>", PACKAGE_ROOT: "<loupe>", TRITON_ROOT: "<triton>"}
    roots |= dict.fromkeys(SITES, "<site>")
    found = [(re.compile(re.escape(directory) + r"(?:/|(?!\w))"), "")] if directory.startswith(os.sep) else []
    for path in sorted(roots, key=len, reverse=True):
        found.append((re.compile(re.escape(path) + r"(?!\w)"), roots[path]))
    return found


def virtualize_locations() -> None:
    """Make locations and names in IR independent of where Triton is and of how the source is run.

    The source's files are run under their paths in its package, as ``__main__`` or as modules; their functions are of
    the module that the path says.
    """
    # Triton's registry has one function a name, and Gluon takes over the names of Triton's.
    for item in gc.get_objects():
        if issubclass(type(item), JITCallable) and hasattr(item, "file_name"):  # isinstance would wake proxies
            item.file_name = virtual_path(item.file_name)
            _know(item)
    original, original_function = JITCallable.__init__, JITFunction.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.file_name = virtual_path(self.file_name)
        _know(self)
        if _is_source(self.file_name):
            self.__module__ = module_name(self.file_name)
            self._fn_name = get_full_name(self)

    def init_function(self: Any, *args: Any, **kwargs: Any) -> None:
        original_function(self, *args, **kwargs)
        if _is_source(self.file_name):
            self.module = self.__module__  # its repr names functions that take it as a constexpr

    JITCallable.__init__, JITFunction.__init__ = init, init_function


def _know(function: Any) -> None:
    text = KernelText(function.src)
    text.function = function
    function._src = text


def _is_source(file: str) -> bool:
    return file.endswith(".py") and not file.startswith((os.sep, "<"))
