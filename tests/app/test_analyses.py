import pytest

from app import analyses
from app.services import Services
from pipelines.analysis.diff import align
from pipelines.trace import previous
from tests.app.helpers import Built


def refuse(*_: object) -> None:
    pytest.fail("it was kept already")


def test_a_summary_leaves_the_diffs_that_it_made(
    services: Services, built: Built, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stored
    content = built.manifest.content
    summary = services.analyses.summary(content)
    trace = services.blobs.open(content)
    changed = [address for address, row in summary.rows.items() if row.changed]
    assert changed
    monkeypatch.setattr(analyses, "align", refuse)
    for address in changed:
        after = built.manifest.resolve(address)
        before = built.manifest.resolve(previous(built.manifest, address) or "")
        kept = services.analyses.diff(trace, before, after)
        assert kept == align(services.analyses.lines(trace, before), services.analyses.lines(trace, after))
        assert (kept.plus, kept.minus) == (summary.rows[address].plus, summary.rows[address].minus)


def test_a_diff_is_made_once(services: Services, built: Built, stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored
    trace = services.blobs.open(built.manifest.content)
    first, last = built.manifest.resolve("ttir:0"), built.manifest.resolve("ttir:5")
    made = services.analyses.diff(trace, first, last)
    monkeypatch.setattr(analyses, "align", refuse)
    assert services.analyses.diff(trace, first, last) == made
