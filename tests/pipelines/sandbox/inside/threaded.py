"""A preload module that breaks the rule: it leaves a thread running."""

import threading
from pathlib import Path


def warm(_: Path) -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
