"""Record every kernel that a program compiles with Triton, all passes included, in the program's own process.

Two lines, before or after ``import triton``::

    import loupe_hook
    loupe_hook.start("recorded")

Afterwards ``loupe import recorded`` makes traces of what is in the folder. This package runs in programs and
environments that are not Loupe's: Python 3.10 or later, the standard library and the program's own Triton, imports
only from inside itself (it is loaded as ``loupe_hook``), and no error of its own reaches the program.
"""

from __future__ import annotations

from .begin import start

__all__ = ["start"]
