from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.triton_path import paths
from pipelines.triton_path.paths import Paths, PathsError

ROOTS = [
    ("/usr", "<python>"),
    ("/lib", "<path>"),
    ("/home/al/proj", ""),
    ("/home/al/proj/.venv/lib/site-packages", "<site-packages>"),
    ("/home/al", "<home>"),
    ("/home/al/pro", ""),
    ("/home/josé/x", ""),
]
PATHS = Paths(ROOTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('loc("/home/al/proj/train.py":3:4)', 'loc("train.py":3:4)'),
        ('loc("/home/al/proj/sub/kernels.py":3:4)', 'loc("sub/kernels.py":3:4)'),
        ('directory: "/home/al/proj")', 'directory: "")'),
        ('directory: "/home/al/proj/sub")', 'directory: "sub")'),
        ('"/home/al/proj/.venv/lib/site-packages/a/b.py"', '"<site-packages>/a/b.py"'),
        ("-I/home/al/proj2/x", "-I<home>/proj2/x"),
        ("in /home/al/proj.", "in ."),
        ("/home/alice/x", "/home/alice/x"),
        ("/usr/lib/python3/x.py", "<python>/lib/python3/x.py"),
        ("/usr", "<python>"),
        (r'"/home/jos\C3\A9/x/y.py"', '"y.py"'),
        (r'"/home/jos\303\251/x/y.py"', '"y.py"'),
        ("/home/josé/x/y.py", "y.py"),
        ("a / b // c", "a / b // c"),
    ],
)
def test_paths_are_replaced_by_what_stands_for_them(before: str, after: str) -> None:
    assert PATHS.string(before) == after
    assert PATHS.json({"a": [before, 1, None]}) == {"a": [after, 1, None]}


def test_folder_in_a_debug_section_keeps_its_length() -> None:
    def spelled(folder: str) -> bytes:
        first, *rest = [*folder.encode(), 0]
        lines = [f".b8 {first}                                  // DW_AT_comp_dir", *(f".b8 {byte}" for byte in rest)]
        return "\n".join([*lines, ".b8 2                                   // Abbrev [2]"]).encode()

    assert PATHS.text(spelled("/home/al/proj")) == spelled("./././././././"[:13])
    assert PATHS.text(spelled("/home/al/proj/sub")) == spelled("./././././././"[:13] + "/sub")
    assert PATHS.text(spelled("/opt/other")) == spelled("/opt/other")
    assert PATHS.text(b".b8 999 // DW_AT_comp_dir\n.b8 47\n") == b".b8 255 // DW_AT_comp_dir\n.b8 47\n"


def test_binary_keeps_its_length_and_its_disassembly_reads_as_a_text() -> None:
    names = [
        b"/home/al/proj/train.py",
        b"/home/al/pro/train.py",
        b"/home/al/proj/.venv/lib/site-packages/a.py",
        b"/home/al/x.py",
    ]
    data = b"\0".join([b"\x7fELF", *names, b"/home/alice", b""])
    made = PATHS.binary(data)
    assert len(made) == len(data)
    assert b"/home/al/" not in made
    assert made.endswith(b"\0/home/alice\0")
    for name, padded in zip(names, made.split(b"\0")[1:], strict=False):
        shown = PATHS.disassembly(b'//## File "' + padded + b'", line 3')
        merged = PATHS.disassembly(b'//## File "' + re.sub(b"/+", b"/", padded) + b'", line 3')
        assert shown == merged == PATHS.text(b'//## File "' + name + b'", line 3')


def test_growth_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_GROWTH", 1000)
    assert Paths([("/a", "<site-packages>")]).text(b"/a " * 50).startswith(b"<site-packages> ")
    with pytest.raises(PathsError):
        Paths([("/a", "<site-packages>")]).text(b"/a " * 500)


NAMES = st.text(st.sampled_from("ab/.é\\ -"), max_size=12)


@given(st.lists(st.tuples(NAMES, st.sampled_from(["", "<home>"])), max_size=6), st.binary(max_size=200), NAMES)
def test_any_roots_and_texts_are_bearable(roots: list[tuple[str, str]], data: bytes, text: str) -> None:
    made = Paths(roots)
    assert len(made.binary(data)) == len(data)
    made.text(data)
    made.disassembly(data)
    made.string(text)


@given(st.lists(st.sampled_from(["usr", "lib", "home", "al", "proj", "x.py", "."]), min_size=1, max_size=6))
def test_no_root_is_left_at_the_start_of_a_path(parts: list[str]) -> None:
    shown = PATHS.string("/" + "/".join(parts))
    assert not any(shown == path or shown.startswith(path + "/") for path, _ in ROOTS)
