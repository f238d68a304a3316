"""The dashboard and the alert rules: every query asks for what a live server shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ports import reserved_port
from roost.metrics.catalogue import COUNTED
from support.promql import selectors_of
from support.requirements import note_missing
from support.servers.live_server import LiveServer
from support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.slow

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
HOST = "c0ffee00-0000-0000-0000-000000000001"
AGGREGATE = "c0ffee00-0000-0000-0000-00000000a001"
SHARE_TRAIT = "HW_CPU_X86_AVX"
# What Prometheus itself adds.
OF_PROMETHEUS = {"instance", "job"}


def dashboard() -> Any:
    return json.loads((MONITORING / "grafana-dashboard.json").read_text())


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def queries() -> dict[str, str]:
    """Every query by where it stands, with the variables of Grafana filled in."""
    found = {f"alert {rule['alert']}": rule["expr"] for rule in rules()}
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"].replace("$__rate_interval", "10s")
            query = query.replace("$instance", ".*").replace("$resource_class", ".*")
            found[f"panel {panel['title']} {target['refId']}"] = query
    return found


QUERIES = queries()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that has done a little of everything."""
    directory = tmp_path_factory.mktemp("monitoring")
    (directory / "queries").write_text("small = resources=VCPU:1\nhuge = resources=VCPU:64\n")
    options = (
        f"[roost]\nmetrics_traits = {SHARE_TRAIT}\nmetrics_aggregates = {AGGREGATE}\n"
        f"metrics_queries = {directory}/queries\n"
    )
    with LiveServer(f"sqlite:///{directory}/x.db", directory, 1, options) as running:
        make_traffic(running)
        wait_until(lambda: 'roost_fits{name="huge"} 0' in text_of(running))
        yield running


def text_of(server: LiveServer) -> str:
    """What Prometheus reads of the server: its own metrics, and those of all providers."""
    client = server.client()
    paths = ("/metrics", "/roost/exporter")
    return "".join(client.get(path).body.decode() for path in paths)


def make_traffic(server: LiveServer) -> None:
    client = server.client()
    body: dict[str, Any] = {"name": "host", "uuid": HOST}
    client.post("/resource_providers", body)
    inventories = {"VCPU": {"total": 8, "reserved": 1}}
    body = {"resource_provider_generation": 0, "inventories": inventories}
    client.put(f"/resource_providers/{HOST}/inventories", body)
    body = {"resource_provider_generation": 1, "traits": [SHARE_TRAIT]}
    client.put(f"/resource_providers/{HOST}/traits", body)
    body = {"resource_provider_generation": 2, "aggregates": [AGGREGATE]}
    client.put(f"/resource_providers/{HOST}/aggregates", body)
    body = {
        "allocations": {HOST: {"resources": {"VCPU": 4}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    statuses = []
    for number in range(2):
        client.get("/allocation_candidates?resources=VCPU:1")
        consumer = HOST.replace("c0ffee00", f"c0ffee0{number}")
        statuses.append(client.put(f"/allocations/{consumer}", body).status)
    assert statuses == [204, 409]
    client.get("/allocation_candidates?resources=VCPU:1")


def labels_by_metric(text: str) -> dict[str, set[str]]:
    """The labels that each metric can have, under each of its names."""
    found: dict[str, set[str]] = {metric.name: set(metric.labels) for metric in COUNTED}
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    for name in kinds:
        found.setdefault(name, set())
    for name, labels in re.findall(r"^(\w+)\{(.*)\} \S+$", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    for name, kind in kinds.items():
        if kind == "histogram":
            for end in ("_bucket", "_sum", "_count"):
                found.setdefault(name + end, set()).update(found[name])
            found[name + "_bucket"].add("le")
            del found[name]
    # A metric that the server does not show must not count as known.
    return {name: labels for name, labels in found.items() if _base(name, kinds) is not None}


def _base(name: str, kinds: dict[str, str]) -> str | None:
    return next((one for one in kinds if name == one or name.startswith(f"{one}_")), None)


@pytest.fixture(scope="module")
def known(server: LiveServer) -> dict[str, set[str]]:
    return {**labels_by_metric(text_of(server)), "up": set()}


@pytest.mark.parametrize("where", QUERIES)
def test_a_query_names_metrics_and_labels_that_a_server_shows(
    known: dict[str, set[str]], where: str
) -> None:
    found = selectors_of(QUERIES[where])
    assert found.metrics
    possible = set(OF_PROMETHEUS)
    for name, labels in found.metrics.items():
        assert name in known, f"{name} is no metric"
        assert labels <= known[name] | OF_PROMETHEUS, f"{name} has not all of {labels}"
        possible |= known[name]
    assert found.groupings <= possible


def test_every_metric_stands_on_the_dashboard(known: dict[str, set[str]]) -> None:
    shown = {
        name
        for where, query in QUERIES.items()
        if where.startswith("panel")
        for name in selectors_of(query).metrics
    }
    missing = known.keys() - shown - {"up"}
    # The sums and averages of a histogram come with its buckets; reservations of a part, and the
    # number of requests in a stage, stand on the page only.
    missing -= {"roost_request_duration_seconds_sum", "roost_stage_requests_total"}
    assert missing == {"roost_trait_reserved", "roost_aggregate_reserved"}


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    for rule in rules():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert set(rule["annotations"]) == {"summary", "description"}


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


# With a real Prometheus, where the machine has one.

# These show nothing as long as nothing fails, each count is exact, and no job reads the exporter:
# noauth2 takes no token that every version of Prometheus can send.
QUIET = re.compile(
    r"^alert |Server errors|ran again|Versions and starts C|Connections of clients D"
    r"|How many more fit, over time B|The fullest providers|Free by resource class"
)


@pytest.fixture(scope="module")
def prometheus(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus that reads the server and the rules."""
    program = shutil.which("prometheus")
    if program is None:
        note_missing("prometheus", "not installed; on Debian: apt install prometheus")
        pytest.skip("Prometheus is not installed")
    directory = tmp_path_factory.mktemp("prometheus")
    job = {"job_name": "roost", "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(MONITORING / "alerts.yaml")],
        "scrape_configs": [job],
    }
    (directory / "prometheus.yml").write_text(json.dumps(configuration))
    with reserved_port() as port, (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            said = (directory / "log").read_text
            wait_until(lambda: process.poll() is not None or has_scrapes(url), said)
            assert process.poll() is None, said()
            yield url
        finally:
            process.terminate()
            process.wait(SECONDS_MAX)


def ask(url: str, query: str) -> list[Any]:
    address = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(address, timeout=SECONDS_MAX) as answer:
        result: list[Any] = json.load(answer)["data"]["result"]
    return result


def has_scrapes(url: str) -> bool:
    """Whether there are two samples, which a rate needs."""
    try:
        found = ask(url, "min(count_over_time(roost_build_info[1m]))")
    except OSError:
        return False
    return bool(found) and float(found[0]["value"][1]) >= 3


def test_prometheus_answers_every_query(prometheus: str) -> None:
    empty = [
        where
        for where, query in QUERIES.items()
        if not ask(prometheus, query) and not QUIET.search(where)
    ]
    assert empty == []


def test_prometheus_takes_the_rules(prometheus: str) -> None:
    with urllib.request.urlopen(f"{prometheus}/api/v1/rules", timeout=SECONDS_MAX) as answer:
        groups = json.load(answer)["data"]["groups"]
    loaded = [rule for group in groups for rule in group["rules"]]
    assert len(loaded) == len(rules())
    assert [rule["name"] for rule in loaded if rule["health"] == "err"] == []
