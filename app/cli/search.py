"""``loupe search``."""

from __future__ import annotations

import json

import click

from app.cli.options import home_option, json_option, settings
from app.cli.source import open_trace, shown_text


@click.command("search")
@click.argument("trace")
@click.argument("query")
@click.option("--regex", is_flag=True, help="Read QUERY as a regular expression, in Python's syntax.")
@home_option
@json_option
def command(trace: str, query: str, regex: bool, home: str | None, as_json: bool) -> None:
    """Find lines in the source, all passes and the artifacts, each at the first address that shows it.

    Letter case counts where QUERY has capitals.
    """
    from app import search
    from app.errors import ApiError

    if not 0 < len(query) <= search.MAX_QUERY:
        raise click.UsageError(f"QUERY has between 1 and {search.MAX_QUERY} characters")
    file = open_trace(trace, settings(home))
    find = search.expression if regex else search.words
    try:
        found = find(search.shown_texts(file.manifest, lambda item: shown_text(file, item)), query)
    except ApiError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        click.echo(json.dumps({"hits": [hit._asdict() for hit in found.hits], "truncated": found.truncated}))
        return
    for hit in found.hits:
        click.echo(f"{hit.address}:{hit.line}: {hit.text}")
    if found.truncated:
        click.echo(f"the search was cut off after {len(found.hits)} lines; there may be more", err=True)
