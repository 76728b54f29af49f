import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps import diagnostics
from pipelines.dumps.diagnostics import MAX_KEPT, MAX_LINE, last_words, parse_diagnostics
from pipelines.trace import MAX_DIAGNOSTICS
from tests.growth import LINEAR, growth

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


def test_of_too_many_the_errors_stay_and_the_rest_is_counted():
    remarks = "".join(f"k.py:{n}:1: remark: r\n" for n in range(MAX_DIAGNOSTICS))
    errors = "".join(f"k.py:{n}:1: error: e\n" for n in range(100))
    found = parse_diagnostics(remarks + errors)
    assert len(found) == MAX_KEPT < MAX_DIAGNOSTICS
    assert [d.line for d in found if d.severity == "error"] == list(range(100))
    assert [d.line for d in found if d.severity == "remark"] == list(range(MAX_KEPT - 101))
    assert (found[-1].severity, found[-1].message.split()[0]) == ("note", str(MAX_DIAGNOSTICS + 101 - MAX_KEPT))


@given(st.lists(st.sampled_from(["error", "warning", "remark", "note"]), max_size=30))
def test_no_message_is_left_out_before_a_lesser_one(severities: list[str]):
    text = "".join(f"k.py:{n}:1: {severity}: m\n" for n, severity in enumerate(severities))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnostics, "MAX_KEPT", 8)
        found = parse_diagnostics(text)
    if len(severities) <= 8:
        assert [d.severity for d in found] == severities
        return
    rank = ["error", "warning", "note", "remark"].index
    *kept, last = found
    assert [d.line for d in kept] == sorted(d.line or 0 for d in kept)
    assert sorted(rank(d.severity) for d in kept) == sorted(map(rank, severities))[:7]
    assert last.message.startswith(str(len(severities) - 7))


def test_messages_are_bounded():
    (one,) = parse_diagnostics("k.py:1:1: error: " + "x" * 1_000_000)
    assert len(one.message) <= MAX_LINE + 4


ABORTED = """warming up
kernel.py:6:7: remark: Warning: vectorization fails vec = 1

    x=tl.load(i_ptr)
      ^
number of input constraints does not match number of parameters
  %5 = llvm.inline_asm "x" at 0x55d0c8a3b2f0
UNREACHABLE executed at /build/llvm-project/llvm/lib/IR/InlineAsm.cpp:123!
Fatal Python error: Aborted

Current thread 0x00007f0123456740 (most recent call first):
  File "/srv/loupe/.venv/lib/python3.11/site-packages/triton/backends/nvidia/compiler.py", line 400 in make_llir
  File "/srv/loupe/pipelines/triton_path/child.py", line 90 in compile_kernel
  File "/srv/loupe/pipelines/sandbox/zygote.py", line 90 in main
  ...

Extension modules: numpy.core._multiarray_umath, pydantic (total: 9)
 #0 0x00007f12 abort
/lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f0123456789]
PLEASE submit a bug report to https://github.com/llvm/llvm-project/issues/
Stack dump:
0.	Program arguments: /usr/bin/python3 -m x
"""


def test_last_words_keep_the_reason_before_the_end():
    assert last_words(ABORTED).split("\n") == [
        "warming up",
        "number of input constraints does not match number of parameters",
        '%5 = llvm.inline_asm "x" at 0x...',
        "UNREACHABLE executed at InlineAsm.cpp:123!",
    ]


PLAIN = "see <triton>/language/core.py and https://a.b/c/d and 1/2 and a / b"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\nb\nc\nd\npython: /x/Foo.cpp:12: void f(): Assertion `x' failed.\n", "b\nc\nd\npython: Foo.cpp:12: "),
        ("LLVM ERROR: Cannot select: 0x55d0c8a3b2f0: f32 = fsin 0x1c3f2a0", "LLVM ERROR: Cannot select: 0x...: f32 = "),
        ("Running @f\nStack dump:\n1.\tRunning pass 'X' on function '@f'", "Running @f\n1.\tRunning pass 'X'"),
        ("one\ntwo\n", "one\ntwo"),
        ("\n".join("abcdefgh"), "c\nd\ne\nf\ng\nh"),
        ('File "/a/b/x.py", line 3, in f\nOSError: /etc/no such', 'File "x.py", line 3, in f\nOSError: no such'),
        ('  File "kernel.py", line 3 in <module>\n', 'File "kernel.py", line 3 in <module>'),
        (PLAIN, PLAIN),
        ("k.py:1:1: error: mine\n   source\n   ^\nend", "k.py:1:1: error: mine\nend"),
        ("words\n  ^\n", "words"),
        ("", ""),
    ],
)
def test_last_words(text: str, words: str):
    assert last_words(text).startswith(words)


@given(st.text(alphabet="/ab .:'\"()>", max_size=80))
def test_no_folder_of_an_absolute_path_is_told(text: str):
    assert "/srv/secret" not in last_words(f"{text} /srv/secret/{text}/x.cpp")


def test_what_varies_from_run_to_run_is_not_told():
    assert last_words(ABORTED) == last_words(ABORTED.replace("0x55d0c8a3b2f0", "0x1c3f2a0").replace("/root", "/home/x"))


PIECES = [
    "a:1:",
    "0x",
    "0xabcdef",
    "/a",
    "/",
    "#1 0x",
    "~",
    "^",
    'File "',
    "[0x1",
    "1.",
    " ",
    "\n",
    "a:1:1: note: x\n",
    "^\n",
]


@pytest.mark.parametrize("piece", PIECES)
def test_hostile_output_costs_its_length(piece: str):
    def text(size: int) -> str:
        return piece * (size // len(piece))

    for call in (parse_diagnostics, last_words):
        assert growth(call, text, 20_000) < LINEAR


@pytest.mark.parametrize("piece", PIECES)
def test_last_words_are_bounded(piece: str):
    assert len(last_words(piece * 200_000)) <= 6 * 1_001


@given(st.lists(st.sampled_from([*PIECES, "LLVM ERROR ", "k.py:1:1: error: e\n"])))
def test_any_output_is_read(pieces: list[str]):
    parse_diagnostics("".join(pieces))
    last_words("".join(pieces))


@given(st.text(max_size=300))
def test_any_text_is_read(text: str):
    parse_diagnostics(text)
    last_words(text)
