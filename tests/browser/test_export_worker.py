"""The worker of exported pages: it decodes what zstd writes, refuses what is damaged, and aligns any two texts."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from app.assets import assets
from pipelines import tracefile
from pipelines.trace import Artifact, digest
from tests.app.helpers import Built, build
from tests.conftest import GOLDEN

START = """(script) => {
  const worker = new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  window.ask = (call, argument) => new Promise((resolve) => {
    worker.addEventListener("message", ({ data }) => resolve(data), { once: true });
    worker.postMessage({ id: 1, call, argument });
  });
}"""
ASK = "([call, argument]) => ask(call, argument)"
EXTRA: dict[str, Any] = {"trace": {"id": "x", "manifest": {}}, "diffs": {}, "plain": {}}


class Worker:
    """A worker as the page starts it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.evaluate(START, assets.text("export-worker.js"))

    def ask(self, call: str, argument: object) -> Any:
        """Call it; return its value, or raise ValueError with its words."""
        reply = self.page.evaluate(ASK, [call, argument])
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply["value"]

    def open(self, archive: bytes, extra: dict[str, Any] | None = None) -> Any:
        """Give it a file."""
        packed = zstandard.ZstdCompressor().compress(json.dumps(extra or EXTRA).encode())
        files, packed_extra = (base64.b64encode(part).decode() for part in (archive, packed))
        return self.ask("open", {"archives": [files], "extra": packed_extra})


@pytest.fixture(scope="module")
def worker(browser: Browser) -> Iterator[Worker]:
    context = browser.new_context()
    yield Worker(context.new_page())
    context.close()


@pytest.fixture(scope="module")
def small() -> Built:
    return build(GOLDEN)


def holding(small: Built, texts: list[bytes], level: int) -> bytes:
    """Return a trace whose artifacts are the texts, each compressed after the one before it."""
    found = {f"t{number}": text for number, text in enumerate(texts)}
    artifacts = tuple(Artifact(name=name, digest=digest(text)) for name, text in found.items())
    manifest = small.manifest.model_copy(update={"artifacts": artifacts})
    blobs = small.blobs | {digest(text): text for text in found.values()}
    return tracefile.write(manifest, blobs, level=level)


def shown(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


@pytest.mark.parametrize("level", [-5, 1, 3, 9, 19, 22])
def test_it_decodes_every_level_and_kind_of_block(worker: Worker, small: Built, level: int) -> None:
    chance = random.Random(level)
    noise = chance.randbytes(300_000)
    words = [b"%" + str(number).encode() for number in range(3000)]
    sentence = b" ".join(chance.choices(words, k=60_000))
    skewed = bytes(chance.choices(range(97, 123), weights=[2.0**-n for n in range(26)], k=200_000))
    texts = [
        b"",
        b"a",
        b"a" * 500_000,
        noise,
        noise[:7],
        sentence,
        sentence.replace(b"%17", b"%18"),
        skewed,
        skewed[:900],
    ]
    texts += [bytes(range(256)) * 40, sentence[1000:] + noise[:5000]]
    data = holding(small, texts, level)
    assert worker.open(data) == EXTRA["trace"]
    order = list(texts)
    chance.shuffle(order)
    for text in order:
        assert worker.ask("text", {"digest": digest(text), "raw": False}) == shown(text)


PIECES = [b"ab", b"%1 = x\n", b"\0" * 40, b"\xff", b"loc(#loc)"]


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from(PIECES)).map(b"".join)), st.data())
def test_it_decodes_what_is_written(worker: Worker, small: Built, texts: list[bytes], data: st.DataObject) -> None:
    archive = holding(small, texts[:60], data.draw(st.sampled_from([1, 3, 9, 19])))
    worker.open(archive)
    for text in texts[:60]:
        assert worker.ask("text", {"digest": digest(text), "raw": False}) == shown(text)


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_file_is_told_and_nothing_hangs(worker: Worker, small: Built, data: st.DataObject) -> None:
    archive = bytearray(small.data)
    for _ in range(data.draw(st.integers(1, 4))):
        archive[data.draw(st.integers(0, len(archive) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(ValueError):
        worker.open(bytes(archive))
        for name in small.manifest.digests():
            assert isinstance(worker.ask("text", {"digest": name, "raw": False}), str)
    worker.open(small.data)
    assert worker.ask("text", {"digest": small.manifest.kernel.source, "raw": False})


LINES = ["%1 = arith.addi %2, %3", "%4 = arith.addi %5, %6", "return", "#loc1 = loc(x)"]
LINES += ["", "}", "x", "y loc(#loc1)", "y"]
TEXT = st.lists(st.sampled_from(LINES), max_size=40).map("\n".join)


@settings(max_examples=150)
@given(TEXT, TEXT)
def test_alignments_cover_both_texts_and_pair_what_reads_alike(worker: Worker, small: Built, a: str, b: str) -> None:
    worker.open(holding(small, [a.encode(), b.encode()], 1))
    sides = {"before": digest(a.encode()), "after": digest(b.encode()), "syntax": "mlir"}
    diff = worker.ask("diff", sides)
    assert diff["rough"]
    old, new = a.split("\n"), b.split("\n")
    i = j = 0
    counts = [0, 0, 0]
    for kind, i1, i2, j1, j2 in diff["ops"]:
        assert (i1, j1) == (i, j)
        i, j = i2, j2
        if kind in (0, 1):
            assert i2 - i1 == j2 - j1
        if kind == 0:
            bare = [[line.partition(" loc(")[0] for line in side] for side in (old[i1:i2], new[j1:j2])]
            assert bare[0] == bare[1]
        counts[0] += (j2 - j1) * (kind == 2)
        counts[1] += (i2 - i1) * (kind == 2)
        counts[2] += (i2 - i1) * (kind == 1)
    assert (i, j) == (len(old), len(new))
    assert counts == [diff["plus"], diff["minus"], diff["renamed"]]
    if a == b:
        assert counts == [0, 0, 0]


def test_large_texts_without_unique_lines_end_and_say_so(worker: Worker, small: Built) -> None:
    one, other = "\n".join(["a", "b"] * 20_000), "\n".join(["b", "c", "a"] * 15_000)
    worker.open(holding(small, [one.encode(), other.encode()], 1))
    sides = {"before": digest(one.encode()), "after": digest(other.encode()), "syntax": "text"}
    assert worker.ask("diff", sides)["fallback"]


def test_kept_alignments_are_used(worker: Worker, small: Built) -> None:
    order = small.manifest.digests()
    worker.open(small.data, {**EXTRA, "diffs": {"1 2": [3, 2, 1, 0, [0, 4, 4, 2, 1, 2]]}})
    found = worker.ask("diff", {"before": order[1], "after": order[2], "syntax": "mlir"})
    assert found["ops"] == [[0, 0, 4, 0, 4], [2, 4, 5, 4, 6]]
    assert (found["plus"], found["minus"], found["renamed"], found["fallback"]) == (3, 2, 1, False)


def test_search_finds_lines_of_all_texts(worker: Worker, small: Built) -> None:
    worker.open(holding(small, [b"one\nTwo\n", b"two two\nthree"], 9))
    places = [["a", digest(b"one\nTwo\n")], ["b", digest(b"two two\nthree")]]
    hits = worker.ask("find", {"places": places, "q": "two", "regex": False})["hits"]
    assert [(hit["address"], hit["line"]) for hit in hits] == [("a", 2), ("b", 1)]
    hits = worker.ask("find", {"places": places, "q": "T[wh]", "regex": True})["hits"]
    assert [hit["text"] for hit in hits] == ["Two"]
    with pytest.raises(ValueError, match="egular expression"):
        worker.ask("find", {"places": places, "q": "(", "regex": True})


def test_matches_are_counted_and_placed_line_by_line(worker: Worker) -> None:
    text = "Abab\n\nno\nxab"
    assert worker.ask("matched", {"source": "ab", "text": text}) == {"count": 3, "lines": [1, 4]}
    assert worker.ask("matched", {"source": "x*", "text": text}) == {"count": 1, "lines": [4]}
    assert worker.ask("matched", {"source": "o$|^x", "text": text}) == {"count": 2, "lines": [3, 4]}
    lines = text.split("\n")
    assert worker.ask("ranges", {"source": "ab|x*", "lines": lines}) == [[[0, 2], [2, 4]], [], [], [[0, 1], [1, 3]]]
    assert worker.ask("matched", {"source": ".", "text": "x" * 99_999 + "\n" + "y" * 500 + "\nz"}) == {
        "count": 100_000,
        "lines": [1, 2],
    }
