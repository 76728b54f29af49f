"""``import loupe_hook``: the folder above, as a package of this name."""

import os

# A module with a path is a package; its own modules lie in the folder above.
__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]  # noqa: PTH100, PTH120 - nothing is imported

from loupe_hook.begin import start  # type: ignore[import-not-found]  # found by the path above

__all__ = ["start"]
