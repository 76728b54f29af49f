"""``loupe import``."""

from __future__ import annotations

import click

from app.cli.options import home_option, json_option, settings, trust_option


@click.command("import")
@click.argument("names", nargs=-1, required=True, metavar="FILE.loupe|DIR...")
@home_option
@trust_option
@json_option
def command(names: tuple[str, ...], home: str | None, trust_code: bool, as_json: bool) -> None:
    """Store traces here under permalinks of their own: .loupe files, folders of them, or what loupe_hook recorded."""
    from app.cli.keeping import gather, keep_here, show

    chosen = settings(home, trust_code=trust_code)
    read = gather(names, chosen, permalinks=False)
    show(keep_here(read.items, chosen), read.refused, as_json=as_json)
    raise SystemExit(1 if read.refused else 0)
