"""JSON as commands print it: like the library's, but however deep the value is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.cli.json_text import json_text

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@settings(max_examples=50, deadline=None)
@given(values)
def test_it_is_what_the_library_prints(value: Any) -> None:
    assert json_text(value) == json.dumps(value, indent=2)


def test_a_value_may_be_deeper_than_python_can_recurse() -> None:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    text = json_text({"deep": value})
    assert "".join(text.split()) == '{"deep":' + "[" * 5001 + "]" * 5001 + "}"
    # Indented to the end it would have 50 million characters.
    assert len(text) < 3_000_000
