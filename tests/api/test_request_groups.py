"""The limits of request groups, traits and classes in a query for candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.model.limits import Limits
from roost.store.database import Database
from support.api_client import ApiClient, limited_client

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
PATH = "/allocation_candidates?group_policy=none&"


def groups(count: int) -> str:
    return PATH + "&".join(f"resources_{number}=VCPU:1" for number in range(count))


@on_sqlite
def test_the_refusal_of_too_many_request_groups_names_the_limit(api: ApiClient) -> None:
    most = Limits().max_request_groups
    assert api.get(groups(most)).status == 200
    refused = api.get(groups(1500))
    assert refused.status == 400
    assert "1500 request groups" in refused.detail
    assert f"the {most} that" in refused.detail
    assert "[roost]max_request_groups" in refused.detail


@on_sqlite
def test_the_limit_of_request_groups_is_an_option(database: Database, tmp_path: Path) -> None:
    api = limited_client(database, tmp_path, max_request_groups=3)
    assert api.get(groups(3)).status == 200
    assert api.get(groups(3) + "&required_2=HW_CPU_X86_VMX&limit=1").status == 200
    assert api.get(groups(3) + "&resources=VCPU:1").status == 400


@on_sqlite
@pytest.mark.parametrize(
    ("key", "name"), [("resources=VCPU:1&required", "CUSTOM_{}"), ("resources", "CUSTOM_{}:1")]
)
def test_a_request_group_may_have_a_thousand_names(api: ApiClient, key: str, name: str) -> None:
    names = ",".join(name.format(number) for number in range(1001))
    refused = api.get(f"{PATH}{key}={names}")
    assert refused.status == 400
    assert "1001" in refused.detail
    assert "1000 are allowed" in refused.detail
