"""The documents keep up with the code."""

import json
import re
from pathlib import Path

import pytest

from pipelines import trace

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"""(?:\]\(|src=")([^)"#\s]+)""")


def required() -> set[str]:
    names: set[str] = set()
    for path in (ROOT / "requirements").glob("*.in"):
        lines = (line.strip() for line in path.read_text().splitlines())
        names.update(re.split(r"[=<>~\[; ]", line)[0] for line in lines if line and line[0] not in "-#")
    package = json.loads((ROOT / "static/package.json").read_text())
    return names | package["dependencies"].keys() | package["devDependencies"].keys()


def test_every_dependency_says_why_it_is_here() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE)
    assert {name for name, _ in rows} == required()
    assert len(rows) == len(required())
    assert all(len(why) > 20 for _, why in rows)


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    targets = [target for target in LINK.findall(path.read_text()) if "://" not in target]
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_index_lists_every_document() -> None:
    linked = set(LINK.findall((ROOT / "docs/index.md").read_text()))
    documents = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert documents <= linked


def test_trace_format_names_every_field_of_the_model() -> None:
    models = {
        name: {field.alias or key for key, field in model.model_fields.items()}
        for name, model in vars(trace).items()
        if isinstance(model, type) and issubclass(model, trace.Model)
    }
    documented: dict[str, set[str]] = {}
    for section in (ROOT / "docs/trace-format.md").read_text().split("\n### ")[1:]:
        table, _, _ = section.partition("\n## ")
        documented[section.partition("\n")[0]] = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    beside_the_file = {"Model", "StageTime", "AddedPass", "AddedStage"}
    assert documented == {name: fields for name, fields in models.items() if name not in beside_the_file}
