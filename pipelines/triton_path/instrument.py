"""Hooks into one Triton compilation, inside the confined child: what ran, when, and what each stage gave.

Everything goes to files in the slot's directory as soon as it is known, so that a later abort loses nothing.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from triton import knobs
from triton._C.libtriton import amd, ir, llvm
from triton.runtime.errors import PTXASError

from pipelines.hook.folder import GLUON_INPUT, OUTPUTS, PTXAS_LOG, UNFINISHED, shown_command
from pipelines.triton_path.slot import EventLog, directory, write_output
from pipelines.triton_path.toolchain import AMD_CODEGEN


class Instrument:
    """Installs the hooks; ``metadata`` is the compilation's own dictionary once a stage has run.

    ``on_ptx`` is called when PTX is there, before the event that tells of it.
    """

    def __init__(self, log: EventLog, on_ptx: Callable[[], None]) -> None:
        self.log = log
        self._on_ptx = on_ptx
        self.metadata: dict[str, Any] = {}
        self.stage: str | None = None
        self._left: Any = None  # the module, once a stage's passes have run and while its output is not written

    def install(self) -> None:
        """Hook the pass manager, the module handed to LLVM, and every stage."""
        knobs.runtime.add_stages_inspection_hook = self._inspect
        self._hook_pass_manager()
        self._hook_to_module()

    def _hook_pass_manager(self) -> None:
        run = ir.pass_manager.run

        def logged(manager: Any, module: Any, name: str) -> Any:
            self.log.write("pipeline", name=name, passes=manager.get_pipeline_str())
            result = run(manager, module, name)
            self.log.write("pipeline-end", name=name)
            self._left = module
            return result

        ir.pass_manager.run = logged

    def _hook_to_module(self) -> None:
        to_module = llvm.to_module

        def saved(module: Any, context: Any) -> Any:
            write_output(UNFINISHED["llvm-dialect"], str(module))
            self._left = None
            self.log.write("stage-end", stage="llvm-dialect")
            self.log.write("stage-begin", stage="llvm-ir")
            return to_module(module, context)

        llvm.to_module = saved

    def _inspect(self, *args: Any) -> tuple[str, str] | None:
        if not args:
            return "loupe", "loupe"
        _, stages, _, _, _ = args
        for extension, function in list(stages.items()):
            if extension != GLUON_INPUT:
                stages[extension] = self._stage(extension, function)
        return None

    def _stage(self, extension: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        first = {"llir": "llvm-dialect"}.get(extension, extension)
        last = {"llir": "llvm-ir"}.get(extension, extension)

        def run(source: Any, metadata: dict[str, Any]) -> Any:
            self.metadata, self.stage, self._left = metadata, first, None
            self.log.write("stage-begin", stage=first)
            with self._tools(extension):
                try:
                    result = function(source, metadata)
                except BaseException:  # whatever ends the stage, what its passes left is kept; it is raised again
                    self._keep_unfinished(first)
                    raise
            if extension in OUTPUTS:
                write_output(OUTPUTS[extension], result if isinstance(result, bytes) else str(result))
            if extension == "ptx":
                self._on_ptx()
            self.log.write("stage-end", stage=last)
            return result

        return run

    def _keep_unfinished(self, stage: str) -> None:
        """Write what the passes left where the stage failed after them: its last pass has no successor to show it."""
        if self._left is not None and stage in UNFINISHED:
            write_output(UNFINISHED[stage], str(self._left))

    def _tools(self, extension: str) -> contextlib.AbstractContextManager[None]:
        """Watch what makes machine code."""
        return {"cubin": self._ptxas, "hsaco": self._linker}.get(extension, contextlib.nullcontext)()

    @contextlib.contextmanager
    def _linker(self) -> Iterator[None]:
        """Tell how AMD's object is made and linked, both by libraries in this process."""
        link = amd.link_hsaco

        def logged(source: str, target: str) -> None:
            linked = ["ld.lld", "-shared", "kernel.o", "-o", "kernel.hsaco"]
            self.log.write("command", command=["libtriton.so,", "in process:", *linked])
            link(source, target)

        amd.link_hsaco = logged
        assembled = ["triton_amdgpu_assemble", "kernel.amdgcn", "kernel.o"]
        self.log.write("command", command=[f"{AMD_CODEGEN},", "in process:", *assembled])
        try:
            yield
        finally:
            amd.link_hsaco = link

    @contextlib.contextmanager
    def _ptxas(self) -> Iterator[None]:
        """Keep what Triton prints of ptxas, else mixed with the user's own output, and the exact command.

        ptxas runs in an empty directory: it writes the time of a source file that it finds into the cubin.
        """
        printed, kept, start = io.StringIO(), sys.stdout, subprocess.run

        def logged(arguments: Any, **options: Any) -> Any:
            self.log.write("command", command=shown_command(arguments))
            with tempfile.TemporaryDirectory(dir=directory()) as empty:
                return start(arguments, cwd=empty, **options)

        sys.stdout = printed
        setattr(subprocess, "run", logged)  # noqa: B010 - mypy refuses to assign to an overloaded function
        try:
            yield
        except PTXASError as error:
            printed = io.StringIO(_ptxas_stderr(str(error)))
            raise
        finally:
            sys.stdout = kept
            setattr(subprocess, "run", start)  # noqa: B010 - as above
            write_output(PTXAS_LOG, printed.getvalue())


def _ptxas_stderr(message: str) -> str:
    """Return ptxas's own words out of Triton's error."""
    return message.partition("`ptxas` stderr:\n")[2].partition("\nRepro command:")[0] or message
