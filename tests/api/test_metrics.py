"""`/metrics`: what Prometheus reads, by the parser of its own client library."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from roost.api.application import Application
from roost.api.observation import scrapes
from roost.api.routes import ROUTES
from roost.configuration.settings import ConfigurationError, WatchSettings
from roost.metrics.catalogue import CONFLICTS
from roost.metrics.counting import TALLY
from roost.metrics.memory import SLOT_BYTES
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for

HOST = "c0ffee00-0000-0000-0000-000000000001"
NODE = "c0ffee00-0000-0000-0000-000000000002"
OTHER = "c0ffee00-0000-0000-0000-000000000003"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"
AGGREGATE = "c0ffee00-0000-0000-0000-00000000a001"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def _own_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    TALLY.open_own()
    # Each scrape is made anew.
    monkeypatch.setattr(scrapes, "_KEPT_SECONDS_MAX", -1.0)
    yield
    TALLY.open_own()


def scrape(api: ApiClient) -> Samples:
    answer = replace(api, token=None, version=None).get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)


def make_hosts(api: ApiClient) -> None:
    """A host with a NUMA node, and another host."""
    body: dict[str, Any]
    for uuid, name, parent in ((HOST, "host", None), (NODE, "node", HOST), (OTHER, "other", None)):
        provider = {"uuid": uuid, "name": name} | (
            {"parent_provider_uuid": parent} if parent else {}
        )
        assert api.post("/resource_providers", provider).status == 200
    for uuid in (NODE, OTHER):
        inventory = {"total": 10, "reserved": 2, "allocation_ratio": 2.0, "max_unit": 16}
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": inventory}}
        assert api.put(f"/resource_providers/{uuid}/inventories", body).status == 200
    body = {"resource_provider_generation": 0, "traits": ["HW_CPU_X86_AVX"]}
    assert api.put(f"/resource_providers/{HOST}/traits", body).status == 200
    body = {"resource_provider_generation": 1, "aggregates": [AGGREGATE]}
    assert api.put(f"/resource_providers/{OTHER}/aggregates", body).status == 200


def claim(api: ApiClient, amount: int, consumer: str = CONSUMER) -> int:
    body = {
        "allocations": {NODE: {"resources": {"VCPU": amount}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return api.put(f"/allocations/{consumer}", body).status


def test_requests_are_counted_by_route_method_version_and_status(api: ApiClient) -> None:
    api.get(f"/resource_providers/{HOST}")
    api.at("1.10").get(f"/resource_providers/{HOST}")
    api.get("/nowhere/at/all")
    api.request("BREW", "/traits")
    replace(api, token=None).get("/traits")
    samples = scrape(api)
    name, route = "roost_requests_total", "/resource_providers/{uuid}"
    for version in ("1.39", "1.10"):
        labels = {"route": route, "method": "GET", "version": version, "status": "404"}
        assert value(samples, name, **labels) == 1
    labels = {"route": "unknown", "method": "GET", "version": "-", "status": "404"}
    assert value(samples, name, **labels) == 1
    labels = {"route": "/traits", "method": "other", "version": "-", "status": "405"}
    assert value(samples, name, **labels) == 1
    labels = {"route": "unknown", "method": "GET", "version": "-", "status": "401"}
    assert value(samples, name, **labels) == 1
    buckets = [
        samples[key]
        for key in sorted(samples, key=lambda key: float(dict(key[1]).get("le", 0)))
        if key[0] == "roost_request_duration_seconds_bucket" and dict(key[1])["route"] == route
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 2
    assert value(samples, "roost_request_duration_seconds_sum", route=route, method="GET") > 0


METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "BREW")


@pytest.mark.parametrize("token", [None, "a:member"])
def test_a_client_without_a_role_cannot_enlarge_a_scrape(api: ApiClient, token: str | None) -> None:
    """Whatever versions, methods and paths it tries."""
    client = replace(api, token=token)
    scrape(api)
    before = len(scrape(api))
    for minor in range(0, 40, 13):
        for path in sorted({route.path for route in ROUTES}):
            for method in METHODS:
                client.at(f"1.{minor}").request(method, path.replace("{uuid}", HOST))
    samples = scrape(api)
    versions = {dict(labels).get("version") for name, labels in samples if "requests" in name}
    assert versions <= {None, "-"}
    assert len(samples) - before < 400


def test_clients_share_a_scrape_for_a_multiple_of_its_cost(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrapes, "_KEPT_TIMES", 1e9)
    monkeypatch.setattr(scrapes, "_KEPT_SECONDS_MAX", 60.0)
    first = api.get("/metrics").body
    assert api.get("/metrics").body == first
    made = itertools.count()
    shared = scrapes.SharedScrape()
    monkeypatch.setattr(scrapes, "_KEPT_SECONDS_MAX", 0.0)
    for _ in range(3):
        shared.text(lambda: str(next(made)).encode())
    assert next(made) == 3


def test_series_without_room_are_counted_and_logged_once(
    api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    scrape(api)
    count = SLOT_BYTES // 500
    for number in range(count):
        CONFLICTS.count((f"{number:0500}",))
    for _ in range(2):
        lost = value(scrape(api), "roost_metrics_lost_series_total")
        assert 0 < lost < count
    assert sum("is full" in record.getMessage() for record in caplog.records) == 1


def test_no_provider_and_no_raw_path_is_named(api: ApiClient) -> None:
    make_hosts(api)
    api.get(f"/resource_providers/{HOST}/inventories?x=secret")
    text = replace(api, token=None).get("/metrics").body.decode()
    for word in (HOST, NODE, "host", "secret"):
        assert word not in text


def test_stages_searches_and_claims_are_counted(api: ApiClient) -> None:
    make_hosts(api)
    query = "/allocation_candidates?resources=VCPU:1"
    for _ in range(3):
        assert len(api.get(query).json["allocation_requests"]) == 2
    assert claim(api, 16) == 204
    api.get(query)
    assert api.delete(f"/allocations/{CONSUMER}").status == 204
    samples = scrape(api)
    assert value(samples, "roost_candidate_answers_total", source="search") == 2
    assert value(samples, "roost_candidate_answers_total", source="kept") == 2
    assert value(samples, "roost_candidates_returned_total") == 7
    assert value(samples, "roost_searched_blocks_total") == 2
    assert value(samples, "roost_claims_total", kind="claimed") == 1
    assert value(samples, "roost_claims_total", kind="released") == 1
    assert value(samples, "roost_journal_rows_read_total") >= 1
    assert value(samples, "roost_forest_rebuilds_total") == 1
    assert value(samples, "roost_forest_refreshes_total", kind="usages") >= 1
    for stage in ("authentication", "freshness", "search", "render", "database"):
        assert value(samples, "roost_stage_seconds_total", stage=stage) > 0, stage
    assert value(samples, "roost_stage_requests_total", stage="search") == 2
    assert value(samples, "roost_requests_in_flight") == 1


def test_conflicts_are_counted_by_cause(api: ApiClient) -> None:
    make_hosts(api)
    assert claim(api, 17) == 409
    assert claim(api, 1) == 204
    assert claim(api, 1) == 409
    assert api.delete(f"/resource_providers/{HOST}").status == 409
    assert api.post("/resource_providers", {"name": "host"}).status == 409
    body = {"resource_provider_generation": 77, "traits": []}
    assert api.put(f"/resource_providers/{HOST}/traits", body).status == 409
    samples = scrape(api)
    causes = {"amount", "consumer_generation", "in_use", "exists", "provider_generation"}
    found = {dict(key[1])["cause"]: 1 for key in samples if key[0] == "roost_conflicts_total"}
    assert found.keys() == causes
    # An amount up to max_unit can still exceed what is left.
    assert claim(api, 16, CONSUMER.replace("c001", "c002")) == 409
    assert value(scrape(api), "roost_conflicts_total", cause="capacity") == 1


def test_capacity_used_and_reserved_by_class_trait_and_aggregate(
    api: ApiClient, database: Database, tmp_path: Path
) -> None:
    watch = WatchSettings(traits=("HW_CPU_X86_AVX", "UNKNOWN"), aggregates=(AGGREGATE,))
    settings = replace(settings_for(database, tmp_path), watch=watch)
    watched = application_client(Application(settings, database))
    make_hosts(watched)
    assert claim(watched, 5) == 204
    watched.get("/allocation_candidates?resources=VCPU:1")
    samples = scrape(watched)

    def sums(prefix: str, **labels: str) -> list[float]:
        return [
            value(samples, f"roost_{prefix}_{field}", resource_class="VCPU", **labels)
            for field in ("capacity", "used", "reserved")
        ]

    assert sums("resource") == [32, 5, 4]
    # The trait is the root's, and the inventory that of its child.
    assert sums("trait", trait="HW_CPU_X86_AVX") == [16, 5, 2]
    assert sums("aggregate", aggregate=AGGREGATE) == [16, 0, 2]
    assert value(samples, "roost_providers") == 3


def test_a_scrape_asks_no_database(
    api: ApiClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_hosts(api)
    api.get("/allocation_candidates?resources=VCPU:1")

    def refuse(*_: object) -> None:
        raise AssertionError("a scrape has opened a session")

    monkeypatch.setattr("roost.store.connections.sessions.Session.__enter__", refuse)
    assert value(scrape(api), "roost_resource_capacity", resource_class="VCPU") == 32


def test_metrics_can_be_switched_off(database: Database, tmp_path: Path) -> None:
    settings = replace(settings_for(database, tmp_path), watch=WatchSettings(metrics=False))
    client = application_client(Application(settings, database))
    assert client.get("/metrics").status == 404


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("metrics_traits = " + ",".join(f"CUSTOM_{number}" for number in range(33)), "may have 32"),
        ("metrics_aggregates = rack-1", "no uuid"),
    ],
)
def test_names_for_metrics_are_checked_at_start(
    database: Database, tmp_path: Path, line: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        settings_for(database, tmp_path, f"[api]\nauth_strategy = noauth2\n[roost]\n{line}\n")


def test_the_page_explains_every_metric(api: ApiClient) -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    text = replace(api, token=None).get("/metrics").body.decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) > 30
    assert [name for name in names if f"`{name}`" not in page] == []
