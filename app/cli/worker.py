"""``loupe worker``."""

from __future__ import annotations

import click

from app.cli.options import home_option, settings, trust_option


@click.group("worker")
def command() -> None:
    """Run a worker by itself; ``loupe serve`` runs one of its own."""


@command.command("compile")
@home_option
@trust_option
def compile_worker(home: str | None, trust_code: bool) -> None:
    """Compile what is submitted to the servers of this home."""
    from app.worker import Worker

    raise SystemExit(Worker(settings(home, trust_code=trust_code)).run())
