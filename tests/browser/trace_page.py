"""The trace page as its tests see it."""

from __future__ import annotations

import re
from typing import Any
from urllib.request import urlopen

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server


class TracePage:
    """A finished trace in a browser; ``manifest`` and ``rows`` are what the API says of it."""

    def __init__(self, page: Page, server: Server, trace_id: str) -> None:
        self.page, self.server, self.id = page, server, trace_id
        found = server.get(f"/api/v1/traces/{trace_id}")
        self.manifest: dict[str, Any] = found["manifest"]
        self.rows: dict[str, dict[str, Any]] = found["summary"]["rows"]

    def open(self, query: str = "") -> None:
        """Go to the trace and wait for its first text."""
        self.page.goto(f"/t/{self.id}{query}")
        expect(self.page.locator("#panes")).to_have_attribute("data-shown", re.compile("."))

    @property
    def changed(self) -> list[str]:
        """Addresses of the passes that J and K stop at, without the artifacts."""
        parents = {
            f"{stage['name']}:{item['ordinal']}": item["parent"]
            for stage in self.manifest["stages"]
            for item in stage["passes"]
        }
        return [address for address, row in self.rows.items() if row["changed"] and parents.get(address) is None]

    def digest(self, address: str) -> str:
        """Return the digest of a text."""
        if ":" not in address:
            return next(str(item["digest"]) for item in self.manifest["artifacts"] if item["name"] == address)
        name, ordinal = address.split(":")
        stage = next(stage for stage in self.manifest["stages"] if stage["name"] == name)
        return str(stage["passes"][int(ordinal) - 1]["text"] if int(ordinal) else stage["input"])

    def text(self, address: str, suffix: str = "") -> list[str]:
        """Return the lines of a text as the API serves it."""
        with urlopen(f"{self.server.url}/api/v1/traces/{self.id}/texts/{self.digest(address)}{suffix}") as answer:
            return answer.read().decode().split("\n")

    def expect_at(self, address: str) -> None:
        """Wait until the page shows an address, in its heading, list and URL."""
        shown = address if ":" in address else ""
        expect(self.page.locator("#title-address")).to_have_text(shown)
        expect(self.page.locator('#list [aria-current="true"]')).to_have_attribute("data-address", address)
        expect(self.page).to_have_url(re.compile(rf"[?&]pass={re.escape(address)}(&|#|$)"))

    def expect_mode(self, mode: str) -> None:
        """Wait until the panes show "diff", "unified" or "text"."""
        expect(self.page.locator("#panes")).to_have_attribute("data-mode", mode)

    def lines(self, pane: str = "right") -> Locator:
        """Return the lines drawn in a pane."""
        return self.page.locator(f"#{pane} .cm-line")

    def number(self, line: int) -> Locator:
        """Return the cell of a line's number in the text shown, or after in a diff."""
        numbers = self.page.locator("#right .cm-pick .cm-gutterElement:visible")
        return numbers.filter(has_text=re.compile(rf"^{line}$")).first

    def press(self, *keys: str) -> None:
        """Type keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
