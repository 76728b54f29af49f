"""``loupe push``."""

from __future__ import annotations

import click

from app.cli.options import home_option, json_option, settings, trust_option
from app.cli.remote import Server, server_option


@click.command("push")
@click.argument("names", nargs=-1, required=True, metavar="FILE.loupe|PERMALINK|DIR...")
@server_option
@home_option
@trust_option
@json_option
def command(names: tuple[str, ...], server: str | None, home: str | None, trust_code: bool, as_json: bool) -> None:
    """Send traces to a server, which gives them permalinks of its own."""
    from app.cli.keeping import gather, keep_remote, show

    if not server:
        raise click.UsageError("say where to: --server http://host:8000, or LOUPE_SERVER")
    remote = Server(server)
    read = gather(names, settings(home, trust_code=trust_code), permalinks=True)
    show(keep_remote(read.items, remote), read.refused, as_json=as_json)
    raise SystemExit(1 if read.refused else 0)
