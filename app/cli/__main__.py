"""``python -m app.cli`` is ``loupe``."""

from app.cli.main import main

main()
