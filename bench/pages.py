"""The trace page in Chromium: from the key press to the painted snapshot, step by step through a large trace."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from bench.report import Row, Section
from bench.server import Server

REPEATS = 3
SWITCH_LIMIT = 120.0
DIFF_LIMIT = 200.0
TASK_LIMIT = 200.0

METHOD = """The gallery's largest trace: attention for sm_80, snapshots up to {megabytes:.1f} MB. `J` is pressed as
soon as the step before is painted, through all {passes} passes that changed something, {repeats} times, each in a
fresh browser context. A step runs from the key press to the painted frame, fetches included; the gates hold for the
slowest step's median, and for every task."""

LAST = "sass"

# A step ends with the first frame that shows the new text. The panes are asked, since the URL may follow later.
WATCH = """
window.bench = { tasks: [], step: null };
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) bench.tasks.push(task.duration);
}).observe({ type: "longtask", buffered: true });
bench.shown = () => [...document.querySelectorAll(".cm-content")].map((each) => each.ariaLabel).filter(Boolean).join();
addEventListener("keydown", (event) => {
  const before = bench.shown();
  bench.step = new Promise((resolve, reject) => {
    const end = () => resolve(performance.now() - event.timeStamp);
    const look = () => requestAnimationFrame(bench.shown() === before ? look : () => setTimeout(end));
    look();
    setTimeout(() => reject(new Error(`nothing came after ${before}`)), 20_000);
  });
}, true);
"""


@dataclass
class Steps:
    """Milliseconds of each step by address, and of every long task, over all repeats."""

    times: dict[str, list[float]]
    tasks: list[float]

    @property
    def medians(self) -> dict[str, float]:
        """Each step's median."""
        return {address: median(times) for address, times in self.times.items()}


def section(server: Server, trace: str) -> Section:
    """Step through all changed passes as text and as diffs."""
    rows = server.json(f"/api/v1/traces/{trace}")["summary"]["rows"]
    with chromium() as browser:
        text = walk(browser, server, trace, "text")
        diff = walk(browser, server, trace, "diff")
    sizes = {address: row["bytes"] for address, row in rows.items()}
    largest = max(sizes[address] for address in text.times)
    cases = [
        (address, f"{sizes[address] / 1e6:.2f}", f"{text.medians[address]:.0f}", f"{diff.medians[address]:.0f}")
        for address in sorted(text.times, key=lambda address: -sizes[address])[:12]
        if address in diff.times
    ]
    return Section(
        "Trace page in Chromium",
        METHOD.format(megabytes=largest / 1e6, passes=len(text.times), repeats=REPEATS),
        [
            Row("pass switch, slowest step", max(text.medians.values()), " ms", SWITCH_LIMIT),
            Row("pass switch, median step", median(text.medians.values()), " ms"),
            Row("diff, slowest step", max(diff.medians.values()), " ms", DIFF_LIMIT),
            Row("diff, median step", median(diff.medians.values()), " ms"),
            Row("longest task", max(text.tasks + diff.tasks, default=0.0), " ms", TASK_LIMIT),
        ],
        ("largest snapshots", "MB", "switch, ms", "diff, ms"),
        cases,
    )


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise RuntimeError("Chromium is not on PATH; install the chromium package")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def walk(browser: Browser, server: Server, trace: str, view: str) -> Steps:
    """Press J from the first pass to the last, in fresh contexts."""
    steps = Steps({}, [])
    for _ in range(REPEATS):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(f"http://127.0.0.1:{server.port}/t/{trace}?pass=ttir:0&view={view}")
        page.wait_for_selector('.cm-content[aria-label="ttir:0"]')
        while address(page) != LAST:
            took = step(page)
            steps.times.setdefault(address(page), []).append(took)
        tasks: list[Any] = page.evaluate("bench.tasks")
        steps.tasks += [float(task) for task in tasks]
        context.close()
    return steps


def step(page: Page) -> float:
    """Go to the next pass that changed something; return the milliseconds until it is painted."""
    page.keyboard.press("Shift+KeyJ")
    took: float = page.evaluate("bench.step")
    return took


def address(page: Page) -> str:
    """Return the address in view, by the label of the pane on the right: ``after: ttgir:2``, or ``ttgir:2``."""
    labels: str = page.evaluate("bench.shown()")
    return labels.rpartition(",")[2].removeprefix("after: ")
