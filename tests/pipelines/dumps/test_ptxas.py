import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps.ptxas import MAX_ERRORS, MAX_LINE, MAX_LOG, normalize_log, parse_errors, parse_resources
from tests.growth import LINEAR, growth

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'softmax' for 'sm_80'
ptxas info    : Function properties for softmax
    24 bytes stack frame, 28 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 16 bytes smem, 384 bytes cmem[0]
ptxas info    : Compile time = 4.421 ms
"""
FAILED = """ptxas-blackwell /tmp/tmpg150gkoh.ptx, line 67; error   : Unexpected instruction types specified for 'rsqrt'
ptxas-blackwell fatal   : Ptx assembly aborted due to errors
"""


def test_resources():
    found = parse_resources(LOG)
    assert found is not None
    assert (found.registers, found.stack, found.spill_stores, found.spill_loads) == (255, 24, 28, 32)
    assert (found.barriers, found.shared, found.constant) == (1, 16, 384)
    dynamic = parse_resources(LOG, shared=49_152)
    assert dynamic is not None
    assert dynamic.shared == 49_152
    assert parse_resources("ptxas fatal : no") is None


def test_errors_are_at_lines_of_the_ptx():
    (error,) = parse_errors(FAILED)
    assert (error.line, error.address) == (67, "ptx")
    assert error.message == "Unexpected instruction types specified for 'rsqrt'"


def test_what_varies_is_taken_out():
    other = LOG.replace("4.421", "9.9")
    assert normalize_log(LOG) == normalize_log(other)
    assert "kernel.ptx, line 67" in normalize_log(FAILED)
    assert "tmpg150gkoh" not in normalize_log(FAILED)


NORMAL = normalize_log(FAILED)
DIRECTORIES = [
    "/tmp",
    "/srv/with space/ünd+é (1)/a.ptx/slots",
    "/home/o'neill/x, line 3; error",
    "/tmpabcdefgh.ptx",
    "",
    "/tmp/tmpabcdefgh",
    "/a/b.ptx.d/tmpfirst000.ptx",
]


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_any_directory_of_the_temporary_file_is_taken_out(directory: str):
    log = FAILED.replace("/tmp/", directory + "/")
    assert normalize_log(log) == NORMAL
    assert normalize_log(NORMAL) == NORMAL
    assert normalize_log(f"ptxas fatal   : Could not open input file '{directory}/tmpg150gkoh.ptx'").endswith(
        "file 'kernel.ptx'"
    )


def test_a_relative_temporary_file_is_taken_out():
    assert normalize_log(FAILED.replace("/tmp/", "")) == NORMAL


@pytest.mark.parametrize("directory", [d for d in DIRECTORIES if ", line" not in d])
def test_errors_are_read_with_any_directory(directory: str):
    assert parse_errors(FAILED.replace("/tmp/", directory + "/")) == parse_errors(NORMAL)


@given(st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), max_size=40))
def test_no_directory_reaches_the_log(name: str):
    log = FAILED.replace("/tmp/", f"/{name}/")
    assert normalize_log(log) == NORMAL


def test_what_is_no_temporary_file_stays():
    for line in ("ptxas info : a.ptx", "ptxas /x/kernel.ptx, line 1; error : b", "see /x/tmp.ptx", "ptxas info : tmp"):
        assert normalize_log(line) == line


PIECES = [
    "a",
    "a/",
    "/",
    "tmp",
    "tmpaaaa",
    ".ptx",
    "tmpaaaa.ptx",
    "/tmpaaaa.ptx/",
    " /",
    ", line 1; error",
    " ",
    "1",
    "'",
]


@pytest.mark.parametrize("piece", PIECES)
def test_a_hostile_log_costs_its_length(piece: str):
    def log(size: int) -> str:
        return "ptxas x" + piece * (size // len(piece)) + "\n" + (piece + "\n") * 100

    for call in (normalize_log, parse_errors, parse_resources):
        assert growth(call, log, 20_000) < LINEAR


@pytest.mark.parametrize("piece", PIECES)
def test_a_log_beyond_the_bound_is_cut(piece: str):
    assert len(normalize_log(piece * MAX_LOG)) <= MAX_LOG + len("kernel.ptx")


def test_errors_are_bounded():
    line = "ptxas x, line 1; error   : " + "m" * 300_000 + "\n"
    (error,) = parse_errors(line)
    assert len(error.message) <= MAX_LINE
    assert len(parse_errors("ptxas x, line 1; error : m\n" * (2 * MAX_ERRORS))) == MAX_ERRORS


@given(st.lists(st.sampled_from([*PIECES, "ptxas ", "\n", "; fatal : x", " bytes stack frame, "])))
def test_any_log_is_read(pieces: list[str]):
    text = "".join(pieces)
    parse_errors(normalize_log(text))
    parse_resources(text)
