from hypothesis import given
from hypothesis import strategies as st

from pipelines.dumps.timing import MAX_REPORTS, Timed, parse_reports
from tests.growth import LINEAR, growth

REPORT = """\
===-------------------------------------------------------------------------===
                         ... Execution time report ...
===-------------------------------------------------------------------------===
  Total Execution Time: 0.0038 seconds

  ----Wall Time----  ----Name----
    0.0015 ( 40.4%)  InlinerPass
    0.0000 (  1.1%)    (A) CallGraph
    0.0009 ( 23.4%)  'tt.func' Pipeline
    0.0009 ( 23.2%)    CanonicalizerPass
    0.0002 (  5.0%)  CanonicalizerPass
   -0.0002 ( -4.2%)  Rest
    0.0038 (100.0%)  Total
"""


def test_report_is_read_in_order_with_its_pipelines():
    inner = Timed("'tt.func' Pipeline", 0.0009, "tt.func", [Timed("CanonicalizerPass", 0.0009)])
    report = [Timed("InlinerPass", 0.0015), inner, Timed("CanonicalizerPass", 0.0002)]
    assert parse_reports(REPORT) == [report]
    assert parse_reports(f"noise\n{REPORT}more 0.1 noise\n{REPORT}") == [report, report]


def test_number_of_reports_is_bounded():
    assert len(parse_reports("... Execution time report ...\n" * (MAX_REPORTS + 10))) == MAX_REPORTS


@given(st.text(max_size=500))
def test_any_text_is_read(text: str):
    for report in parse_reports(f"Execution time report\n{text}"):
        assert all(item.name for item in report)


@given(
    st.lists(st.tuples(st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,20}", fullmatch=True), st.integers(0, 10**6)), max_size=30)
)
def test_what_is_printed_is_read(rows: list[tuple[str, int]]):
    rows = [(name, tick) for name, tick in rows if name not in ("Rest", "Total")]
    text = "Execution time report\n" + "".join(f"  {tick / 1e4:.4f} ( 10.0%)  {name}\n" for name, tick in rows)
    assert parse_reports(text) == [[Timed(name, tick / 1e4) for name, tick in rows]]


def test_cost_is_linear():
    row = "    0.0009 ( 23.4%)  'tt.func' Pipeline\n"
    assert growth(parse_reports, lambda size: "Execution time report\n" + row * size, 2_000) < LINEAR
