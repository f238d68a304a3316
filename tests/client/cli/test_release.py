"""`roost release`: consumers that hold nothing afterwards."""

from __future__ import annotations

from support.client.live_providers import LiveProviders
from support.roost_command import roost


def test_a_release_says_what_the_consumer_held(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 8})
    uuid = live_providers.claim("instance", host={"VCPU": 3})
    planned = roost("release", uuid, "--dry-run")
    assert planned.lines == [f"{uuid} (VCPU=3): would be released"]
    assert live_providers.taken("instance") == {"host": {"VCPU": 3}}
    assert roost("release", uuid).lines == [f"{uuid} (VCPU=3): released"]
    assert live_providers.taken("instance") == {}


def test_one_consumer_that_holds_nothing_releases_none(live_providers: LiveProviders) -> None:
    live_providers.add("host", totals={"VCPU": 8})
    uuid, nothing = live_providers.claim("instance", host={"VCPU": 3}), live_providers.uuid("none")
    outcome = roost("release", uuid, nothing)
    assert outcome.status == 1
    assert f"Consumer {nothing} holds nothing" in outcome.err
    assert outcome.err.splitlines()[-1] == "Next: roost consumer list"
    assert live_providers.taken("instance") == {"host": {"VCPU": 3}}
