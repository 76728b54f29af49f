from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps.diagnostics import last_words, parse_diagnostics

PRINTED = """warming up
kernel.py:6:7: remark: Warning: vectorization fails vec = 1 origin vec = 1 numElems = 8 mask is 1

    x=tl.load(i_ptr+row*istride+c,mask=c<n_cols,other=-float('inf'))
      ^
kernel.py:32:17: error: failed to legalize operation 'tt.map_elementwise' that was explicitly marked illegal
    (pruned,) = tl.map_elementwise(keep_two_of_four, weight, pack=4)
                ^
kernel.py:32:17: note: see current operation: %97 = "tt.map_elementwise"(%96)
kernel.py:29:0: error: Failures have been detected while processing an MLIR pass pipeline
kernel.py:6:7: remark: Warning: vectorization fails vec = 1 origin vec = 1 numElems = 8 mask is 1
"""


def test_remarks_and_errors_keep_their_lines():
    first, second = parse_diagnostics(PRINTED)
    assert (first.severity, first.line, first.column) == ("remark", 6, 7)
    assert first.message == "vectorization fails vec = 1 origin vec = 1 numElems = 8 mask is 1"
    assert (second.severity, second.line, second.file) == ("error", 32, "kernel.py")


def test_last_words_leave_out_what_varies():
    text = "hello\npython: Foo.cpp:12: void f(): Assertion `x' failed.\n #0 0x00007f12 abort\nStack dump:\n"
    assert last_words(text) == "python: Foo.cpp:12: void f(): Assertion `x' failed."
    assert last_words("one\ntwo\n") == "one\ntwo"
    assert last_words("") == ""


@given(st.text(max_size=300))
def test_any_text_is_read(text: str):
    parse_diagnostics(text)
    last_words(text)
