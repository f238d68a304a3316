"""The cases of docs/explain.md: each world is made, each query is asked, each answer is true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.api_client import ApiClient
from support.code_blocks import all_code_blocks
from support.worlds.notation import aggregate_uuid, provider_uuid, write_query
from support.worlds.world import build_world

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
AGGREGATES = ("storage", "az1")
# The heading of each case, and what is under it.
CASES = dict(
    part.split("\n", 1)
    for part in PAGE.read_text().split("\n## ")[1:]  # The first is the preface.
)


@pytest.mark.parametrize("title", CASES)
def test_the_page_shows_the_answer(api: ApiClient, title: str) -> None:
    blocks = {block.language: block.text for block in all_code_blocks(CASES[title])}
    build_world(api, blocks["world"])
    query = write_query(blocks["query"].strip())
    answer = api.get(f"/roost/explain?{query}").json
    assert_shown(json.loads(blocks["json"]), with_names(answer))
    assert candidates(api, query) == 0
    for hint in answer["hints"]:
        assert candidates(api, hint["query"]) > 0, hint
    if "works" in blocks:
        assert candidates(api, write_query(blocks["works"].strip())) > 0
    if "whatif" in blocks:
        body = blocks["whatif"].replace(
            "<the consumer that holds 2 VCPU of n2>", holder(api, "n2", 2)
        )
        (told,) = api.post("/roost/whatif", json.loads(body)).json["answers"]
        assert (told["before"]["feasible"], told["after"]["feasible"]) == (False, True)


def assert_shown(shown: Any, answer: Any) -> None:
    """Everything that the page shows is in the answer; `...` stands for the rest of a list."""
    if isinstance(shown, dict):
        for key, value in shown.items():
            assert_shown(value, answer[key])
    elif isinstance(shown, list):
        is_cut = "..." in shown
        assert len(answer) > len(shown) - 1 if is_cut else len(answer) == len(shown), answer
        for value, found in zip(shown, answer, strict=False):
            if value != "...":
                assert_shown(value, found)
    else:
        assert shown == answer


def with_names(answer: Any) -> Any:
    """The answer with the names of aggregates in braces."""
    text = json.dumps(answer)
    for name in AGGREGATES:
        text = text.replace(aggregate_uuid(name), f"{{{name}}}")
    return json.loads(text)


def candidates(api: ApiClient, query: str) -> int:
    answer = api.get(f"/roost/candidates?{query}")
    assert answer.status == 200, answer.body
    return len(answer.json["allocation_requests"])


def holder(api: ApiClient, name: str, amount: int) -> str:
    """The consumer that holds this amount of VCPU of a provider."""
    held = api.get(f"/resource_providers/{provider_uuid(name)}/allocations").json["allocations"]
    (found,) = [uuid for uuid, its in held.items() if its["resources"].get("VCPU") == amount]
    return str(found)
