from pipelines.dumps.ptxas import normalize_log, parse_errors, parse_resources

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
