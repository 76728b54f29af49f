import re
from dataclasses import replace
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from app.export_markdown import MAX_CHARACTERS, MAX_LINES, Trace, code, fence, markdown, parse_lines, parts_of
from pipelines.analysis.diff import Lines as Side
from pipelines.analysis.diff import align
from pipelines.analysis.mask import line_keys
from pipelines.trace import Snapshot, TraceError, digest
from tests.app.helpers import PTX, Built, error_of, loupe, upload

# What a hostile text could close a fence with: a line ends at any of these.
LINE_ENDS = re.compile(r"\r\n|\n|\r")
PIECES = ["`", "``", "```", "~~~", "\n", "\r", " ", "    ", "x", "<b>", "\0", "é"]
TRICKY = st.lists(st.sampled_from(PIECES)).map("".join)


def fenced(document: str) -> tuple[str, str]:
    """Read the first fence as CommonMark does: its info string and what it holds; the rest must be nothing."""
    lines = LINE_ENDS.split(document)
    opening = re.fullmatch(r"(`{3,})([^`]*)", lines[0])
    assert opening
    for at, line in enumerate(lines[1:], 1):
        closing = re.fullmatch(r" {0,3}(`+)[ \t]*", line)
        if closing and len(closing[1]) >= len(opening[1]):
            assert lines[at + 1 :] == []
            return opening[2], "\n".join(lines[1:at])
    pytest.fail("the fence is not closed")


@given(TRICKY)
def test_no_text_closes_its_fence(text: str) -> None:
    info, inside = fenced(fence(text, "mlir"))
    assert info == "mlir"
    assert inside == "\n".join(LINE_ENDS.split(text + "\n")[:-1])


@given(TRICKY)
def test_a_code_span_holds_any_text_in_one_line(text: str) -> None:
    span = code(text)
    ticks = re.match("`+", span)
    assert ticks
    assert not LINE_ENDS.search(span)
    inside = span[len(ticks[0]) : -len(ticks[0])]
    assert span == ticks[0] + inside + ticks[0]
    assert ticks[0] not in re.findall("`+", inside)
    assert inside.split() == text.split()


@given(st.integers(1, 999), st.integers(0, 999))
def test_lines_are_read_in_every_spelling(first: int, more: int) -> None:
    last = first + more
    assert parse_lines(f"{first}-{last}") == parse_lines(f"L{first}-L{last}") == (first, last)
    assert parse_lines(str(first)) == (first, first)


@pytest.mark.parametrize("text", ["0", "3-2", "-3", "a", "1-2-3", "1 - 2", "9" * 12, "1.5"])
def test_what_are_no_lines_is_told(text: str) -> None:
    with pytest.raises(TraceError, match="are no lines"):
        parse_lines(text)


def trace_of(built: Built, texts: dict[str, bytes] | None = None) -> Trace:
    found = {**built.blobs, **(texts or {})}

    def side(snapshot: Snapshot) -> Side:
        text = found[snapshot.text]
        return Side(text, snapshot.syntax, line_keys(text, snapshot.syntax))

    return Trace(built.manifest, lambda item: found[item.text], lambda a, b: align(side(a), side(b)), "http://x/t/1")


def test_a_document_says_what_the_trace_is(built: Built) -> None:
    text = markdown(replace(trace_of(built), defaults={"num_warps": 8}), [])
    assert text.splitlines()[0] == "# `scale` for sm_80"
    for words in ("`triton 3.9.0`", "`num_warps=4`", "registers 16", "<http://x/t/1>"):
        assert words in text
    assert "num_warps" not in markdown(replace(trace_of(built), defaults={"num_warps": 4}), [])
    assert "num_warps" in markdown(trace_of(built), [])


def test_chosen_lines_and_a_diff_are_shown(built: Built) -> None:
    parts = parts_of(built.manifest, ["ptx", "source"], ["2-3"], ["ttir:0..ttir:1"])
    text = markdown(trace_of(built), parts)
    assert "```ptx\n.visible .entry scale()\n{\n```" in text
    assert "lines 2 to 3 of 5" in text
    assert "(http://x/t/1?pass=ptx&view=text#L2-L3)" in text
    assert "```python\nimport triton" in text
    assert re.search(r"## `ttir:0` to `ttir:1` `[^`]+`, \+\d+ -\d+", text)


def test_locations_are_left_out_until_asked_for(built: Built) -> None:
    parts = parts_of(built.manifest, ["ttir:1"], [], [])
    plain, located = markdown(trace_of(built), parts), markdown(replace(trace_of(built), locations=True), parts)
    assert "loc(" not in plain
    assert "loc(" in located
    assert "tt.func" in plain


LONG = [b"x\n" * (MAX_LINES + 5), b"y" * (MAX_CHARACTERS + 5), b"z" * MAX_CHARACTERS + b"\nw"]


@pytest.mark.parametrize("text", LONG)
def test_a_long_text_is_cut_and_says_so(built: Built, text: bytes) -> None:
    document = markdown(trace_of(built, {digest(PTX): text}), parts_of(built.manifest, ["ptx"], [], []))
    assert len(document) < MAX_CHARACTERS + 2000
    assert re.search(r"lines 1 to [\d,]+ of [\d,]+|`ptx` \(", document)


WRONG = [(["ttir:99"], [], []), (["cubin"], [], []), (["ptx"], ["99"], []), (["ptx"], ["1", "2"], [])]
WRONG += [([], [], ["ttir:0"]), ([], [], ["ttir:0..nothing"]), ([], [], ["..ttir:1"]), ([], [], ["cubin..ptx"])]
WRONG += [(["ptx"] * 51, [], [])]


@pytest.mark.parametrize(("items", "lines", "diffs"), WRONG)
def test_what_cannot_be_shown_is_told(built: Built, items: list[str], lines: list[str], diffs: list[str]) -> None:
    with pytest.raises(TraceError):
        markdown(trace_of(built), parts_of(built.manifest, items, lines, diffs))


def test_the_api_takes_several_items(client: FlaskClient, stored: str) -> None:
    base = f"/api/v1/traces/{stored}/export.md"
    answer = client.get(f"{base}?item=ttir:1&item=ptx&lines=1-2&lines=2&diff=ttir:1")
    assert answer.status_code == 200
    assert answer.mimetype == "text/markdown"
    assert answer.text.count("\n## ") == 3
    assert f"<http://localhost/t/{stored}>" in answer.text
    assert error_of(client.get(f"{base}?item=ttir:99"))["code"] == "not_found"
    assert error_of(client.get(f"{base}?{'item=ptx&' * 51}"))["detail"]["field"].startswith("item")
    assert client.get(f"{base}?itme=ptx").status_code == 422


@pytest.mark.usefixtures("ready_worker")
def test_the_api_knows_defaults_of_the_same_toolchain(client: FlaskClient, built: Built) -> None:
    changed = built.manifest.model_copy(update={"options": {"num_warps": 8}})
    same, other = upload(client, built), upload(client, replace(built, manifest=changed))
    assert "options" not in client.get(f"/api/v1/traces/{same}/export.md").text
    assert "`num_warps=8`" in client.get(f"/api/v1/traces/{other}/export.md").text


def test_the_command_writes_the_same(client: FlaskClient, stored: str, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "notes" / "scale.md"
    wanted = ("--item", "ptx", "--lines", "1-2", "--diff", "ttir:1")
    ended = loupe("export", file, "--markdown", out, *wanted, home=tmp_path)
    assert ended.exit_code == 0, ended.output
    served = client.get(f"/api/v1/traces/{stored}/export.md?item=ptx&lines=1-2&diff=ttir:1").text
    link = re.compile(r" \(\[open\]\([^)]*\)\)|- trace: .*\n")
    assert out.read_text(encoding="utf-8") == link.sub("", served)
    wrong = loupe("export", file, "--item", "ptx", "--dir", tmp_path / "x", home=tmp_path)
    assert wrong.exit_code == 2
    assert loupe("export", file, "--markdown", out, "--item", "nothing", home=tmp_path).exit_code == 1
