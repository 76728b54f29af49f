"""``loupe capture``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

import pipelines.hook
from app.cli.options import home_option, json_option, settings, trust_option
from app.cli.remote import Server
from pipelines.hook.begin import DIRECTORY, KEEP_CACHE

if TYPE_CHECKING:
    from app.cli.keeping import Kept
    from app.config import Settings
    from app.recordings import Item

HOOK_PATH = Path(pipelines.hook.__file__).parent / "path"

_NOTHING = (
    "no kernel was recorded. Did the program compile one with Triton, in a Python that reads PYTHONPATH (not -I, -E or "
    "-S)? With --keep-cache, or TRITON_ALWAYS_COMPILE=0, kernels that Triton's cache knows are not compiled."
)


def _print_path(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(str(HOOK_PATH))
        context.exit()


@click.command("capture", context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGUMENT]...")
@click.option("-o", "output", type=click.Path(file_okay=False), help="Write .loupe files into a folder instead.")
@click.option("--push", "server", metavar="URL", help="Send the traces to a server instead.")
@click.option("--keep-cache", is_flag=True, help="Let Triton use its cache: what it knows is not recorded.")
@click.option(
    "--hook-path",
    is_flag=True,
    is_eager=True,
    callback=_print_path,
    expose_value=False,
    help="Print the folder to put on sys.path for `import loupe_hook`.",
)
@home_option
@trust_option
@json_option
def command(
    program: tuple[str, ...],
    output: str | None,
    server: str | None,
    keep_cache: bool,
    home: str | None,
    trust_code: bool,
    as_json: bool,
) -> None:
    """Run a program of your own, unconfined, and make a trace of every kernel that it compiles with Triton.

    Its exit code becomes this command's. What was captured is told on standard error, with --json on standard output.
    """
    if output and server:
        raise click.UsageError("-o and --push exclude one another")
    remote = Server(server) if server else None
    chosen = settings(home, trust_code=trust_code)
    recording = Path(tempfile.mkdtemp(prefix="loupe-capture-"))
    try:
        code = run(program, recording, keep_cache=keep_cache)
        complete = _keep(recording, chosen, Path(output) if output else None, remote, as_json)
    except BaseException:  # what was recorded is not lost with what went wrong; it is raised again
        if any(recording.iterdir()):
            click.echo(f"The recording is kept: loupe import {recording}", err=True)
        else:
            recording.rmdir()
        raise
    if complete:
        shutil.rmtree(recording)
    else:
        click.echo(f"The recording is kept: {recording}", err=True)
    raise SystemExit(code or (0 if complete else 1))


def run(program: tuple[str, ...], recording: Path, *, keep_cache: bool) -> int:
    """Run a program with the hook in every Python that it starts; return the exit code that a shell would tell."""
    others = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HOOK_PATH), *([others] if others else [])]),
        DIRECTORY: str(recording),
        KEEP_CACHE: "1" if keep_cache else "0",
    }
    try:
        process = subprocess.Popen(program, env=environment)
    except FileNotFoundError:
        raise click.ClickException(f"there is no program {program[0]}") from None
    except OSError as error:
        raise click.ClickException(f"{program[0]} cannot be run: {error.strerror}") from None

    def forward(signum: int, _frame: FrameType | None) -> None:
        if signum != signal.SIGINT:  # the terminal sends that one to the program too
            process.send_signal(signum)

    before = {each: signal.signal(each, forward) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        code = process.wait()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return 128 - code if code < 0 else code


def _keep(recording: Path, chosen: Settings, output: Path | None, remote: Server | None, as_json: bool) -> bool:
    """Make traces of a recording and tell where they are; return whether all of it was read."""
    from app.cli.keeping import show
    from app.recordings import read_recording

    read = read_recording(recording, chosen)
    if not read.items and not read.refused:
        click.echo(_NOTHING, err=True)
    kept = _put(read.items, chosen, output, remote) if read.items else []
    show(kept, read.refused, as_json=as_json, out=lambda line: click.echo(line, err=True))
    return not read.refused


def _put(items: list[Item], chosen: Settings, output: Path | None, remote: Server | None) -> list[Kept]:
    from app.cli.keeping import keep_files, keep_here, keep_remote

    if output:
        return keep_files(items, output)
    return keep_remote(items, remote) if remote else keep_here(items, chosen)
