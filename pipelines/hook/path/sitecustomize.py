"""Python runs this at its start because ``loupe capture`` put this folder on PYTHONPATH.

It starts the recorder and then runs the ``sitecustomize`` that it stands before, if there is one.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - every process pays for what is imported here


def _start() -> None:
    try:
        import loupe_hook.begin  # type: ignore[import-not-found]  # beside this file

        loupe_hook.begin.start_from_environment()
    except Exception as error:  # the program starts whatever is wrong here
        print(f"loupe: kernels are not recorded: {type(error).__name__}: {error}", file=sys.stderr)


def _run_next() -> None:
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100 - as above
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_start()
_run_next()
