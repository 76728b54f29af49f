"""One compilation while it is recorded: its folder, and what is written there as soon as it is known."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import describe, sources, tools
from .dump import Dump
from .folder import DUMP, OUTPUTS, PTXAS_LOG, UNFINISHED, EventLog, shown_command, write_output
from .json_safe import json_safe

SCHEMA = "loupe.recording/1"

MAX_LOG = 4 << 20

_PRINTS_DEBUG_INFORMATION = (3, 5)


class Attempt:
    """A call of ``triton.compile``. Until Triton has found nothing in its cache, ``begin``, there is no folder.

    Args:
        source: what is compiled, an ``ASTSource`` or the path of an IR file.
        tuning: the autotuner on whose behalf, with the name of its group.
    """

    def __init__(self, source: Any, tuning: tuple[Any, str] | None) -> None:
        self.source = source
        self.stage: str | None = None
        self.begun = False
        self._tuning = tuning
        self._options: Any = None
        self._metadata: Mapping[str, Any] = {}
        self._left: Any = None  # the module, once a stage's passes have run and while its output is not written
        self._extension = ""
        self._made: dict[str, Any] = {}

    def begin(self, folder: Path, dump: Dump, backend: Any, options: Any) -> None:
        """Make the folder and write what is known before the first pass."""
        self.folder, self._dump, self._options = folder, dump, options
        folder.mkdir()
        self.log = EventLog(folder)
        self._describe(backend)
        self._write_launch(None)
        dump.turn(folder / DUMP)
        self.begun = True

    def _describe(self, backend: Any) -> None:
        import triton

        function = getattr(self.source, "fn", None)
        root = str(Path(triton.__file__).parent)
        file = sources.file_of(function) if function else str(self.source)
        text = sources.text_of(function) if function else Path(file).read_text()
        target = backend.target
        self._root, self._file = root, file
        self._made = {
            "schema": SCHEMA,
            "at": time.time(),
            "file": file,
            "line": function.fn.__code__.co_firstlineno if function else None,
            "module": function.fn.__module__ if function else None,
            "target": {"backend": target.backend, "arch": str(target.arch), "warp_size": target.warp_size},
            "roots": sources.roots(root, file),
            "group": self._tuning[1] if self._tuning else None,
            "tools": [tools.describe_triton(triton)],
            "ended": False,
        }
        write_output(self.folder, "source.out", text.encode("utf-8", errors="replace"))
        self._write_made()

    def _write_made(self) -> None:
        write_output(self.folder, "compile.json", json.dumps(self._made))

    def _write_launch(self, launch: dict[str, Any] | None) -> None:
        function = getattr(self.source, "fn", None)
        label = None
        if function and self._tuning:
            label = describe.config_label(self._tuning[0].configs, self.source, self._options)
        known = launch or ({"grid": None, "arguments": []} if label else None)
        data = {
            "name": function.__name__ if function else Path(str(self.source)).stem,
            "origin": "captured",
            "arguments": describe.arguments_of(self.source),
            "options": describe.options_of(self._options),
            "launch": {**known, "config": label} if known else None,
        }
        write_output(self.folder, "launch.json", json.dumps(data))

    def launched(self, grid: Any, values: Any) -> None:
        """Add how the kernel was launched for the first time."""
        self._write_launch(describe.launch_of(self.source, grid, values))

    def enter(self, extension: str, metadata: Mapping[str, Any]) -> None:
        """A stage begins; ``llir`` begins with the passes of the LLVM dialect."""
        self._metadata, self._left, self._extension = metadata, None, extension
        self.stage = {"llir": "llvm-dialect"}.get(extension, extension)
        self.log.write("stage-begin", stage=self.stage)

    def leave(self, extension: str, result: Any) -> None:
        """A stage has ended."""
        if extension in OUTPUTS:
            write_output(self.folder, OUTPUTS[extension], result if isinstance(result, bytes) else str(result))
        self.log.write("stage-end", stage={"llir": "llvm-ir"}.get(extension, extension))
        if extension == "ttir" and self._root:
            self._write_others(str(result))

    def keep_unfinished(self) -> None:
        """Write what the passes left where the stage failed after them: its last pass has no successor to show it."""
        if self._left is not None and self.stage in UNFINISHED:
            write_output(self.folder, UNFINISHED[self.stage], _printed(self._left))

    def _write_others(self, ir: str) -> None:
        self._made["files"] = {}
        for number, (path, text) in enumerate(sources.others(ir, self._file, self._root).items(), 1):
            write_output(self.folder, f"source-{number}.out", text)
            self._made["files"][path] = f"source-{number}"
        self._write_made()

    def begin_passes(self, manager: Any, name: str | None) -> None:
        """A pass manager is about to run; ``name`` is None in a Triton that gives its runs no names."""
        self._run = name or f"make_{self._extension}"
        self.log.write("pipeline", name=self._run, passes=manager.get_pipeline_str())

    def end_passes(self, module: Any) -> None:
        """The pass manager has come to its end and left a module."""
        self.log.write("pipeline-end", name=self._run)
        self._left = module

    def keep_dialect(self, module: Any) -> None:
        """The module is handed to LLVM."""
        write_output(self.folder, UNFINISHED["llvm-dialect"], _printed(module))
        self._left = None
        self.log.write("stage-end", stage="llvm-dialect")
        self.log.write("stage-begin", stage="llvm-ir")

    def command(self, arguments: Any, log: Any) -> None:
        """A tool has run; ``log`` is the file that its standard error went to."""
        self.log.write("command", command=shown_command(arguments))
        self._made["tools"].append(tools.describe_tool(str(arguments[0])))
        with Path(log.name).open("rb") as file:
            write_output(self.folder, PTXAS_LOG, file.read(MAX_LOG))

    def end(self, error: BaseException | None) -> None:
        """The compilation has ended."""
        self._dump.close()
        if error is not None:
            write_output(self.folder, "error.json", json.dumps(describe.error_of(error, self.stage)))
        known = {*describe.plain(self._options), "hash", "target", "triton_version"}
        found = {
            key: json_safe(value) for key, value in self._metadata.items() if key not in known and not key.isupper()
        }
        found |= {"num_warps": self._metadata.get("num_warps"), "num_ctas": self._metadata.get("num_ctas")}
        write_output(self.folder, "metadata.json", json.dumps(found))
        self._made["ended"] = True
        self._write_made()
        self.log.close()
        self._left, self._metadata = None, {}


def _printed(module: Any) -> str:
    """Return a module's text; without locations before Triton 3.5, which may crash printing LLVM's debug ones."""
    import triton

    if tuple(map(int, triton.__version__.split(".")[:2])) < _PRINTS_DEBUG_INFORMATION:
        return str(module.str_nodebug())
    return str(module)
