"""``loupe serve``."""

from __future__ import annotations

import click

from app.cli.options import home_option, settings, trust_option


@click.command("serve")
@click.option("--host", help="Address to listen on; LOUPE_HOST, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on, 0 for any; LOUPE_PORT, else 8000.")
@click.option(
    "--no-login",
    is_flag=True,
    help="Listen on an address that others reach, although nobody has to log in; LOUPE_NO_LOGIN=1.",
)
@home_option
@trust_option
def command(host: str | None, port: int | None, home: str | None, trust_code: bool, no_login: bool) -> None:
    """Serve the pages and the API, and compile what is submitted."""
    from app.supervisor import ServeError, Supervisor

    chosen = settings(home, host=host, port=port, trust_code=trust_code, no_login=no_login)
    try:
        code = Supervisor(chosen, lambda url: click.echo(f"Loupe serves {url}")).run()
    except ServeError as error:
        raise click.ClickException(str(error)) from None
    raise SystemExit(code)
