"""``loupe compile``."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli import added
from app.cli.files import read_files
from app.cli.options import home_option, json_option, settings, trust_option
from app.config import Settings

if TYPE_CHECKING:
    from app.addendum_jobs import Kind
    from app.blobs import BlobStore
    from app.models import Trace

KINDS: tuple[Kind, ...] = ("llvm-passes", "pass-times")


@click.command("compile")
@click.argument("paths", metavar="[FILE | FOLDER | ZIP]...", nargs=-1, type=click.Path(exists=True, allow_dash=True))
@click.option("--entry", metavar="FILE", help="Of several files, the one to start with.")
@click.option(
    "--module", help="A module of an installed library, such as liger_kernel.ops.rms_norm, in place of files."
)
@click.option("--kernel", help="Kernel to compile; without it, all that the file launches.")
@click.option("--arg", "args", multiple=True, metavar="NAME=TYPE", help="Type of an argument: x_ptr=*fp16:16, n=i32.")
@click.option("--const", "constexprs", multiple=True, metavar="NAME=V", help="Value of a constexpr: BLOCK=1024.")
@click.option("--target", "targets", multiple=True, help="Chip, such as sm_90 or gfx942; several make a group.")
@click.option("--option", "options", multiple=True, metavar="K=V", help="Compiler option: num_warps=8.")
@click.option("--fresh", is_flag=True, help="Compile even what was compiled before.")
@click.option("--llvm-passes", is_flag=True, help="Keep the IR after each of LLVM's own passes, too.")
@click.option("--pass-times", is_flag=True, help="Time the passes in three more compilations without dumps.")
@click.option("-o", "output", type=click.Path(), help="Write the trace to a file, or several traces into a folder.")
@home_option
@trust_option
@json_option
def command(
    paths: tuple[str, ...], output: str | None, home: str | None, trust_code: bool, as_json: bool, **flags: Any
) -> None:
    """Compile a kernel and keep the IR after every pass. Needs no server and no GPU.

    Several files, a folder or a zip are a package: the files may import one another. Without --arg the file's own
    launch code is run to find out what it launches. What is neither given nor launched is guessed, and said to be:
    `loupe kernels FILE` lists the guesses.
    """
    if output:
        check_output(Path(output), several=len(flags["targets"]) > 1)
    body = {
        **sources(paths, flags["entry"], flags["module"]),
        "kernel": flags["kernel"],
        "args": dict(pair(text, "--arg") for text in flags["args"]) or None,
        "constexprs": {key: value(text) for key, text in (pair(item, "--const") for item in flags["constexprs"])},
        "options": {key: value(text) for key, text in (pair(item, "--option") for item in flags["options"])},
        **({"targets": flags["targets"]} if flags["targets"] else {}),
        "fresh": flags["fresh"],
    }
    kinds = tuple(kind for kind in KINDS if flags[kind.replace("-", "_")])
    ok = compile_all(settings(home, trust_code=trust_code), body, output, as_json, kinds)
    raise SystemExit(0 if ok else 1)


def sources(paths: tuple[str, ...], entry: str | None, module: str | None) -> dict[str, Any]:
    """Return what to compile, as the request names it; raise click.UsageError where nothing or too much is given."""
    if module is None and not paths:
        raise click.UsageError("name a file, a folder or a zip, or give --module")
    if module is None:
        return read_files(paths, entry)
    if paths or entry:
        raise click.UsageError("--module takes the place of files and of --entry")
    return {"module": module}


def compile_all(
    chosen: Settings, body: dict[str, Any], output: str | None, as_json: bool, kinds: Sequence[Kind] = ()
) -> bool:
    """Compile, add what ``kinds`` name, and print; return whether every trace is ok and has what was to be added."""
    from pydantic import ValidationError

    from app.errors import ApiError
    from app.local import local_compiler
    from app.submissions import CompileRequest
    from pipelines.sandbox import SandboxUnavailable

    try:
        request = CompileRequest(**body)
        with local_compiler(chosen) as compiler:
            group, traces = compiler.compile(request)
            told = [(trace.id, compiler.add(trace.id, kind)) for trace in traces for kind in kinds]
            blobs = compiler.services.blobs
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        at = f"{fault['loc'][0]}: " if fault["loc"] else ""
        raise click.UsageError(at + fault["msg"].removeprefix("Value error, ")) from None
    except ApiError as error:
        raise (click.UsageError if error.status == 422 else click.ClickException)(str(error)) from None
    except SandboxUnavailable as error:
        raise click.ClickException(str(error)) from None
    (print_json if as_json else print_text)(blobs, group, traces, told)
    click.echo("".join(f"{line}\n" for line in added.failures(told)), err=True, nl=False)
    if output:
        write_files(blobs, traces, Path(output))
    return all(trace.status == "ok" for trace in traces) and all(reply.status == "done" for _, reply in told)


def print_json(blobs: BlobStore, group: str, traces: list[Trace], told: added.Told) -> None:
    """Print the group with its manifests; a trace without one is told by its status and failure."""
    manifests = [
        json.loads(blobs.open(trace.content).manifest.model_dump_json(by_alias=True))
        if trace.content
        else {"status": trace.status, "target": {"arch": trace.target}, "failure": trace.failure}
        for trace in traces
    ]
    data: dict[str, Any] = {"group": group, "traces": manifests}
    if told:
        data["addenda"] = [{"trace": trace, **reply.model_dump(mode="json")} for trace, reply in told]
    click.echo(json.dumps(data))
    for trace in traces:
        _explain(blobs, trace)


def print_text(blobs: BlobStore, group: str, traces: list[Trace], told: added.Told) -> None:
    """Print a trace with its passes and its permalink, or a line for each of several."""
    from app.cli.text import describe, signature, table

    if len(traces) > 1:
        manifests = [blobs.open(trace.content).manifest if trace.content else None for trace in traces]
        click.echo("\n".join(table(traces, manifests)))
        click.echo(f"\n/g/{group}: {len(traces)} traces")
        for name, manifest in {made.kernel.name: made for made in manifests if made}.items():
            guessed = list(signature(manifest))
            click.echo("\n".join(["", f"{name}:", *guessed]) if guessed else "", nl=bool(guessed))
    elif traces[0].content and traces[0].status == "ok":
        click.echo(f"/t/{traces[0].id}\n{describe(blobs.open(traces[0].content))}")
    else:
        click.echo(f"/t/{traces[0].id}")
    click.echo("".join(f"{line}\n" for line in ["", *added.lines(told)] if told), nl=False)
    for trace in traces:
        _explain(blobs, trace)


def _explain(blobs: BlobStore, trace: Trace) -> None:
    """Say on standard error why a trace failed, with the user's own line."""
    from app.cli.text import failure

    if trace.content:
        lines = list(failure(blobs.open(trace.content)))
    else:
        lines = [f"failed: {trace.failure['message']}"] if trace.failure else []
    if lines:
        click.echo("\n".join([f"{trace.kernel or 'kernel'} for {trace.target}:", *lines]), err=True)


def check_output(output: Path, *, several: bool) -> None:
    """Raise click.UsageError where one trace or ``several`` cannot be written to a path, before they are compiled."""
    folder = output if output.is_dir() else output.parent
    if not folder.is_dir():
        raise click.UsageError(f"-o: there is no folder {folder}")
    if not os.access(folder, os.W_OK) or (output.is_file() and not os.access(output, os.W_OK)):
        raise click.UsageError(f"-o: {output} cannot be written")
    if several and output.exists() and not output.is_dir():
        raise click.UsageError(f"-o: {output} is a file, and several targets need a folder")


def write_files(blobs: BlobStore, traces: list[Trace], output: Path) -> None:
    """Copy trace files out of the store: one to the path itself, several into it as a folder."""
    from app.traces import file_name

    stored = [trace for trace in traces if trace.content]
    if len(traces) > 1 and output.exists() and not output.is_dir():
        words = f"{output} is a file, and {len(traces)} traces need a folder"
        raise click.ClickException(f"{words}; they are stored, so name one and run this again")
    if len(traces) > 1:
        output.mkdir(exist_ok=True)
    for trace in stored:
        variant = f"{trace.variant}-" if len({t.variant for t in traces}) > 1 else ""
        path = output / f"{variant}{file_name(trace)}" if output.is_dir() else output
        shutil.copyfile(blobs.path(trace.content or ""), path)


def pair(text: str, flag: str) -> tuple[str, str]:
    """Split ``name=value``."""
    name, equals, rest = text.partition("=")
    if not equals or not name or not rest:
        raise click.UsageError(f"{flag} takes NAME=VALUE, not {text!r}")
    return name.strip(), rest.strip()


def value(text: str) -> Any:
    """Read a number, a truth value, a list or a quoted text as JSON writes them, else the text itself."""
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except (ValueError, RecursionError):
        return text
