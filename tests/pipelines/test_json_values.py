import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.json_values import MAX_DEPTH, json_safe, plain


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": "\ud800"}, {"\udfff": 1}, "\ud800"])
def test_values_no_reader_would_take_cannot_be_built(value: Any):
    with pytest.raises(ValueError, match=r"JSON number|surrogates"):
        plain(value)


def test_nesting_is_bounded():
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert plain(deep) == deep
    with pytest.raises(ValueError, match="nested"):
        plain([deep])


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.binary()
    | st.text(st.characters(exclude_categories=())),
    lambda x: (
        st.lists(x) | st.tuples(x) | st.dictionaries(st.text(st.characters(exclude_categories=())) | st.integers(), x)
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_option_values_become_json_that_a_manifest_takes(value: Any):
    safe = json_safe(value)
    json.dumps(safe, allow_nan=False)
    assert plain(safe) == safe
    assert json_safe((1, {"a": (2,)})) == [1, {"a": [2]}]


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError


def test_values_without_a_form_of_their_own():
    endless: list[Any] = []
    endless.append(endless)
    for value in (endless, 10**6000, [10**6000], Hostile(), {"a": {1: Hostile()}}, "\ud800"):
        plain(json_safe(value))
    assert json_safe(object()) == "<object object>"
    assert json_safe(Hostile()) == "<Hostile>"
    assert len(str(json_safe(b"x" * 100_000))) < 5_000
