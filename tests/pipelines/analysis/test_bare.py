import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.analysis.bare import bare_lines
from pipelines.analysis.mask import LOCATION, line_keys
from pipelines.trace import Syntax

GOLDEN = Path(__file__).parents[2] / "golden" / "analysis"
FILES: list[tuple[str, Syntax]] = [("matmul-cf.mlir", "mlir"), ("softmax-llvm.mlir", "mlir"), ("softmax.ll", "llvm")]
FILES += [("softmax.ptx", "ptx"), ("softmax-sm90.sass", "sass")]
WORDS = ["loc(", ")", '"', "(", "\n", " ", "#loc1 = ", "!dbg !3", ", ", "x", "%0", "!3 = !DI", "$L__tmp1", "//## File"]


@pytest.mark.parametrize(("name", "syntax"), FILES)
def test_real_texts_keep_all_but_their_locations(name: str, syntax: Syntax) -> None:
    text = (GOLDEN / name).read_bytes()
    shown = [line for line in bare_lines(text, syntax) if line is not None]
    assert 0 < len(shown) < text.count(b"\n") + 1
    assert not re.search(rb" loc\(|!dbg !\d", b"\n".join(shown))
    operations = re.compile(rb"arith\.\w+|getelementptr|ld\.global|HMMA|LDG")
    assert operations.findall(b"\n".join(shown)) == operations.findall(text)


@pytest.mark.parametrize("syntax", ["python", "text"])
def test_what_has_no_locations_stays(syntax: Syntax) -> None:
    assert bare_lines(b"x loc(y)\n#loc1 = 3\n", syntax) == [b"x loc(y)", b"#loc1 = 3", b""]


@given(st.lists(st.sampled_from(WORDS)).map("".join), st.sampled_from(["mlir", "llvm", "ptx", "sass", "text"]))
def test_lines_stay_in_place_and_only_lose(text: str, syntax: Syntax) -> None:
    data = text.encode()
    lines, keys = bare_lines(data, syntax), line_keys(data, syntax)
    assert [line is None for line in lines] == (keys == LOCATION).tolist()
    for line, before in zip(lines, data.split(b"\n"), strict=True):
        rest = iter(before)
        assert line is None or all(byte in rest for byte in line)
