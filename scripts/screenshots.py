"""Take the README's pictures: a server with an empty home, the gallery's kernels, Chromium.

Usage: python scripts/screenshots.py [folder, docs/images by default]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.pages import chromium  # noqa: E402 - the path comes first
from bench.server import Server, serve  # noqa: E402 - the path comes first

Scheme = Literal["light", "dark"]


def open_page(browser: Browser, server: Server, path: str, scheme: Scheme) -> Page:
    """Open a page as a reader with that colour scheme sees it."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme).new_page()
    page.goto(f"http://127.0.0.1:{server.port}{path}")
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    return page


def shoot(page: Page, path: Path) -> None:
    """Save what is in view and close the page's context."""
    page.screenshot(path=path, animations="disabled", caret="hide")
    page.context.close()
    print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


def submit(server: Server, name: str, arch: str) -> str:
    """Compile an example to its end; return the trace's permalink."""
    trace = server.submit((ROOT / "examples" / name).read_text(), arch)
    server.wait(trace, "done")
    return trace


def main() -> None:
    """Take all pictures."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    with serve() as server, chromium() as browser:
        trace = submit(server, "matmul.py", "sm_90")
        submit(server, "softmax.py", "sm_90")
        autotuned = submit(server, "matmul_autotuned.py", "sm_90")
        group = server.json(f"/api/v1/traces/{autotuned}")["group"]
        for each in server.json(f"/api/v1/groups/{group}")["traces"]:
            server.wait(each["id"], "done")
        for scheme in ("light", "dark"):
            page = open_page(browser, server, f"/t/{trace}?pass=ttgir:2", scheme)
            page.wait_for_selector('.cm-content[aria-label="after: ttgir:2"]')
            shoot(page, folder / f"trace-{scheme}.png")
        shoot(open_page(browser, server, "/", "light"), folder / "home-light.png")
        shoot(open_page(browser, server, f"/g/{group}", "light"), folder / "group-light.png")


if __name__ == "__main__":
    main()
