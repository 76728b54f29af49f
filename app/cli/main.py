"""The commands, each in a module of its own that is imported when it is used."""

from __future__ import annotations

import errno
import importlib
import logging
import signal
from typing import Any

import click

from app.config import HomeError

COMMANDS = {
    "serve": "app.cli.serve",
    "compile": "app.cli.compile",
    "kernels": "app.cli.kernels",
    "show": "app.cli.show",
    "diff": "app.cli.diff",
    "search": "app.cli.search",
    "export": "app.cli.export",
    "capture": "app.cli.capture",
    "import": "app.cli.import_",
    "push": "app.cli.push",
    "worker": "app.cli.worker",
}


class Lazy(click.Group):
    """A group whose commands are imported on use: ``loupe show`` should not wait for a web server's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)  # noqa: S101 - narrows an untyped import
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        What cannot be read or written is told in a sentence; after a signal the exit code is that of a shell.
        """
        try:
            return super().invoke(ctx)
        except HomeError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt as error:
            raise SystemExit(128 + getattr(error, "signum", signal.SIGINT)) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever reads has enough: click ends quietly
                raise
            raise click.ClickException(_words(error)) from None
        except Exception as error:
            if (
                type(error).__name__ == "OperationalError"
            ):  # SQLAlchemy's or sqlite3's; neither is imported by every command
                raise click.ClickException(_database_words(error)) from None
            raise


def _words(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{str(error.filename)[:200]}: {reason}" if error.filename else reason


def _database_words(error: Exception) -> str:
    reason = getattr(error, "orig", error)
    return f"Loupe's database cannot be used: {reason}. Look at the folder in LOUPE_HOME, or name another with --home."


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="loupe")
def main() -> None:
    """See what every compiler pass did to a GPU kernel."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    for noisy in ("huey", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
