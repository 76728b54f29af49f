"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from app.config import Settings

home_option = click.option(
    "--home", type=click.Path(file_okay=False), help="Folder that holds Loupe's data; LOUPE_HOME, else ~/.loupe."
)
trust_option = click.option(
    "--trust-code", is_flag=True, help="Compile even where the kernel cannot confine code: it then runs as you."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print data instead of text.")


def settings(
    home: str | None,
    *,
    host: str | None = None,
    port: int | None = None,
    trust_code: bool = False,
    no_login: bool = False,
) -> Settings:
    """Return the settings from flags and the environment; raise click.UsageError where they make no sense."""
    try:
        return Settings.from_environment(
            home=Path(home) if home else None, host=host, port=port, trust_code=trust_code, no_login=no_login
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
