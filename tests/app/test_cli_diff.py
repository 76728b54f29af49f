from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from app.unified import unified
from pipelines.analysis.diff import Lines, align
from pipelines.analysis.mask import line_keys
from tests.app.helpers import Built, loupe


def test_diff_counts_and_shows_what_changed(file: Path, built: Built) -> None:
    last = len(built.manifest.stages[0].passes)
    data = json.loads(loupe("diff", file, "ttir:0", f"ttir:{last}", "--json").output)
    text = loupe("diff", file, "ttir:0", f"ttir:{last}").output.split("\n")
    assert text[0] == f"ttir:0 to ttir:{last}: +{data['plus']} -{data['minus']}, {data['renamed']} renamed only"
    added = [line[1:] for line in text[1:] if line.startswith("+")]
    removed = [line[1:] for line in text[1:] if line.startswith("-")]
    assert (len(added), len(removed)) == (data["plus"], data["minus"])
    after = built.blobs[built.manifest.resolve(f"ttir:{last}").text].decode().split("\n")
    assert set(added) <= set(after)
    assert sum(line.startswith("@@") for line in text) >= 1
    assert loupe("diff", file, "ttir:0", "cubin").exit_code == 1


HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


def place(line: str) -> str:
    """A line without the number of its location, which never counts."""
    return re.sub(r"#loc\d*", "#loc", line)


def check_hunks(shown: list[str], old: list[str], new: list[str]) -> int:
    """Hold every line of a diff against both texts, by the numbers of its hunk; return how many hunks there are."""
    at, hunks = 0, 0
    while at < len(shown):
        head = HUNK.fullmatch(shown[at])
        assert head, shown[at]
        first_old, lines_old, first_new, lines_new = map(int, head.groups())
        i, j = first_old - (lines_old > 0), first_new - (lines_new > 0)
        end_old, end_new = i + lines_old, j + lines_new
        at, hunks = at + 1, hunks + 1
        while at < len(shown) and not shown[at].startswith("@@"):
            mark, line = shown[at][:1], shown[at][1:]
            at += 1
            if mark == "\\":
                continue
            if mark != "+":
                assert mark == "~" or place(line) == place(old[i])
                i += 1
            if mark != "-":
                assert line == new[j]
                j += 1
        assert (i, j) == (end_old, end_new)
    return hunks


@pytest.mark.parametrize("ends", [("ttir:0", -1), ("ttir:0", 1), ("ttir:1", 3)])
def test_diff_is_one_that_the_texts_agree_with(file: Path, built: Built, ends: tuple[str, int]) -> None:
    passes = built.manifest.stages[0].passes
    before, after = ends[0], f"ttir:{passes[ends[1] - 1].ordinal if ends[1] > 0 else len(passes)}"
    old, new = (built.blobs[built.manifest.resolve(name).text].decode().split("\n") for name in (before, after))
    shown = loupe("diff", file, before, after).output.split("\n")[1:-1]
    changed = any(line[:1] in "+-" for line in shown)
    assert (check_hunks(shown, old, new) > 0) == changed


def test_every_diff_is_one_that_the_texts_agree_with() -> None:
    words = random.Random(7)
    for _ in range(300):
        old = [f"%{n} = arith.op{words.randrange(5)} %a : i32" for n in range(words.randrange(1, 60))]
        new = [line for line in old if words.random() > 0.1]
        for _ in range(words.randrange(4)):
            new.insert(words.randrange(len(new) + 1), words.choice(['#loc = loc("a":1:2)', "return", "%x = tt.new"]))
        sides = [Lines(text, "mlir", line_keys(text, "mlir")) for text in ("\n".join(x).encode() for x in (old, new))]
        new = new or [""]
        diff = align(*sides)
        shown = list(unified(diff, old, new))
        check_hunks(shown, old, new)
        assert sum(line.startswith("+") for line in shown) == diff.plus
        assert sum(line.startswith("-") for line in shown) == diff.minus


def shown_diff(before: str, after: str) -> list[str]:
    sides = [Lines(text.encode(), "mlir", line_keys(text.encode(), "mlir")) for text in (before, after)]
    return list(unified(align(*sides), before.split("\n"), after.split("\n")))


def test_lines_that_read_the_same_are_explained() -> None:
    assert shown_diff("%a = t.x\n%b = t.y\n%c = t.use %a", "%b = t.x\n%a = t.y\n%c = t.use %a") == [
        "@@ -1,3 +1,3 @@",
        "~%b = t.x",
        "~%a = t.y",
        "-%c = t.use %a",
        "+%c = t.use %a",
        "\\ reads like a removed line: it moved, or a name in it means something else: 3",
    ]


def test_renamed_lines_are_marked_only_around_changes() -> None:
    assert shown_diff("%a = t.x\n%b = t.y %a", "%q = t.x\n%b = t.y %q\nreturn") == [
        "@@ -1,2 +1,3 @@",
        "~%q = t.x",
        "~%b = t.y %q",
        "+return",
    ]
    assert shown_diff("%a = t.x\n%b = t.y %a", "%q = t.x\n%b = t.y %q") == []
