"""`GET /roost/exporter`: all inventories, under the names that existing dashboards use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.store.database import Database
from support.api_client import ApiClient
from support.store.bulk_rows import write_providers
from support.worlds.notation import provider_uuid
from support.worlds.world import build_world

on_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

PREFIX = "openstack_placement_resource"


def scrape(api: ApiClient) -> str:
    answer = api.get("/roost/exporter")
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.body.decode()


def samples(text: str) -> set[str]:
    return {line for line in text.splitlines() if not line.startswith("#")}


def test_every_inventory_has_four_samples(api: ApiClient) -> None:
    build_world(api, "H(DISK 40), N<H(VCPU 8 used 3, MEM 4)")
    path = f"/resource_providers/{provider_uuid('N')}/inventories/VCPU"
    fields = {"reserved": 2, "allocation_ratio": 1.5}
    assert api.put(path, {**api.get(path).json, **fields}).status == 200
    expected = {
        "total": {("H", "DISK_GB"): "40", ("N", "VCPU"): "8", ("N", "MEMORY_MB"): "4"},
        "reserved": {("H", "DISK_GB"): "0", ("N", "VCPU"): "2", ("N", "MEMORY_MB"): "0"},
        "usage": {("H", "DISK_GB"): "0", ("N", "VCPU"): "3", ("N", "MEMORY_MB"): "0"},
        "allocation_ratio": {("H", "DISK_GB"): "1", ("N", "VCPU"): "1.5", ("N", "MEMORY_MB"): "1"},
    }
    assert samples(scrape(api)) == {
        f'{PREFIX}_{metric}{{hostname="{host}",resourcetype="{kind}"}} {value}'
        for metric, values in expected.items()
        for (host, kind), value in values.items()
    }


def test_the_lines_of_a_metric_stand_together(api: ApiClient) -> None:
    build_world(api, "H(DISK 40, VCPU 4), G(VCPU 8, MEM 2)")
    lines = [
        line.replace("# HELP ", "").replace("# TYPE ", "") for line in scrape(api).splitlines()
    ]
    metrics = [line.split()[0].split("{")[0] for line in lines]
    assert list(dict.fromkeys(metrics)) == [
        f"{PREFIX}_{name}" for name in ("total", "reserved", "usage", "allocation_ratio")
    ]
    assert metrics == sorted(metrics, key=list(dict.fromkeys(metrics)).index)


def test_names_are_escaped(api: ApiClient) -> None:
    build_world(api, "H(VCPU 4)")
    body = {"name": 'a"b\\c\nd \N{OWL}'}
    assert api.put(f"/resource_providers/{provider_uuid('H')}", body).status == 200
    line = f'{PREFIX}_total{{hostname="a\\"b\\\\c\\nd \N{OWL}",resourcetype="VCPU"}} 4'
    assert line in samples(scrape(api))


def test_a_cloud_without_providers_has_no_samples(api: ApiClient) -> None:
    assert samples(scrape(api)) == set()


@on_sqlite
def test_a_large_cloud_is_sent_in_pieces(api: ApiClient, database: Database) -> None:
    database.write_at_once(write_providers, range(9000), total=8)
    text = scrape(api)
    assert "content-length" not in api.get("/roost/exporter").headers
    assert len(samples(text)) == 4 * 9000
    assert f'{PREFIX}_usage{{hostname="provider 8999",resourcetype="VCPU"}} 0' in text


@on_sqlite
def test_the_exporter_takes_no_parameters(api: ApiClient) -> None:
    answer = api.get("/roost/exporter?name=a")
    assert answer.status == 400
    assert "'name' is no parameter of this route." in answer.detail


@on_sqlite
def test_the_exporter_wants_a_token_whatever_a_scraper_accepts(api: ApiClient) -> None:
    assert replace(api, token=None).get("/roost/exporter").status == 401
    accepted = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    assert api.get("/roost/exporter", accept=accepted).status == 200
