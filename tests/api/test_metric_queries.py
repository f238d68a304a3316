"""`[roost]metrics_queries`: questions of the operator, answered in every scrape."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from roost.api.application import Application
from roost.api.observation import query_counting, scrapes
from roost.configuration.settings import ConfigurationError, Settings, load_settings
from roost.metrics.counting import TALLY
from roost.model.candidate_query.query import CandidateQuery
from roost.search.capacity.capacity import Capacity
from roost.search.forest.forest import Forest
from roost.service.questions.capacity_answers import capacity_of
from roost.store.database import Database
from roost.turns import SearchTooLong
from support.api_client import ApiClient, application_client, settings_for
from support.waiting import wait_until

HOST = "c0ffee00-0000-0000-0000-000000000001"
CONSUMER = "c0ffee00-0000-0000-0000-00000000c001"

pytestmark = pytest.mark.usefixtures("_quick")


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Counts of no other test, rounds without a pause, and a new text for each scrape."""
    TALLY.open_own()
    monkeypatch.setattr(scrapes, "_KEPT_SECONDS_MAX", -1.0)
    monkeypatch.setattr(query_counting, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(query_counting, "_FOREST_SECONDS", 0.0)
    yield
    TALLY.open_own()


@dataclass
class Watched:
    """An application with named queries."""

    application: Application
    client: ApiClient
    directory: Path
    settings: Settings

    def text(self) -> str:
        return replace(self.client, token=None, version=None).get("/metrics").body.decode()

    def figures(self, name: str) -> dict[str, float]:
        """What a scrape says of a query: the names of the metrics without their beginning."""
        return {
            sample.name.removeprefix("roost_"): sample.value
            for family in text_string_to_metric_families(self.text())
            for sample in family.samples
            if sample.labels.get("name") == name
        }

    def shows(self, name: str, fits: int, at_most: int, feasible: int) -> None:
        """Wait until a scrape says so."""
        wanted = {"fits": fits, "fits_at_most": at_most, "feasible": feasible}
        wait_until(
            lambda: wanted.items() <= self.figures(name).items(), lambda: str(self.figures(name))
        )

    def reload(self, text: str) -> None:
        """Read another file of queries, as at SIGHUP."""
        fresh = settings_with(text, self.directory, self.settings)
        self.application.prepare_reload(fresh)()

    def claim(self, amount: int) -> None:
        body = {
            "allocations": {HOST: {"resources": {"VCPU": amount}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        assert self.client.put(f"/allocations/{CONSUMER}", body).status == 204


def settings_with(text: str, directory: Path, base: Settings) -> Settings:
    """The settings with the queries of this file."""
    (directory / "queries").write_text(text)
    config = directory / "watched.conf"
    config.write_text(
        f"[api]\nauth_strategy = noauth2\n[roost]\nmetrics_queries = {directory}/queries\n"
    )
    return replace(base, watch=load_settings([str(config)], base.database.url).watch)


@pytest.fixture
def watch(api: ApiClient, database: Database, tmp_path: Path) -> Iterator[Callable[[str], Watched]]:
    """Starts an application with the queries of a text, on a host with 16 VCPU."""
    assert api.post("/resource_providers", {"uuid": HOST, "name": "secret-host"}).status == 200
    inventory = {"total": 16, "allocation_ratio": 1.0, "max_unit": 16}
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": inventory}}
    assert api.put(f"/resource_providers/{HOST}/inventories", body).status == 200
    applications = []

    def start(text: str) -> Watched:
        settings = settings_with(text, tmp_path, settings_for(database, tmp_path))
        application = Application(settings, database)
        application.start_housekeeping()
        applications.append(application)
        return Watched(application, application_client(application), tmp_path, settings)

    yield start
    for application in applications:
        application.close()


def test_each_query_has_its_figures_and_they_follow_every_change(
    watch: Callable[[str], Watched],
) -> None:
    watched = watch(
        "# how many more of each flavour fit\n\n"
        "small = resources=VCPU:1\n"
        "  large=?resources=VCPU:8  \n"
        "huge = resources=VCPU:32\n"
    )
    watched.shows("small", 16, 16, 1)
    watched.shows("large", 2, 2, 1)
    watched.shows("huge", 0, 0, 0)
    watched.claim(10)
    watched.shows("small", 6, 6, 1)
    watched.shows("large", 0, 0, 0)


def test_a_name_that_does_not_exist_counts_as_nothing_until_it_exists(
    watch: Callable[[str], Watched], caplog: pytest.LogCaptureFixture
) -> None:
    watched = watch("odd = resources=VCPU:1&required=!CUSTOM_LATER\n")
    watched.shows("odd", 0, 0, 0)
    (line,) = [one.getMessage() for one in caplog.records if "the query odd" in one.getMessage()]
    assert "queries, line 1" in line
    assert "CUSTOM_LATER" in line
    assert watched.client.put("/traits/CUSTOM_LATER").status == 201
    watched.shows("odd", 16, 16, 1)


def test_a_query_may_name_a_provider_and_no_scrape_does(watch: Callable[[str], Watched]) -> None:
    watched = watch("there = resources=VCPU:2&in_tree=secret-host\n")
    watched.shows("there", 8, 8, 1)
    assert "secret-host" not in watched.text()
    assert HOST not in watched.text()


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_without_a_change_nothing_is_counted_again_and_the_time_goes_on(
    watch: Callable[[str], Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def count(forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> Capacity:
        counts.append(query)
        return capacity_of(forest, query, pause)

    monkeypatch.setattr(query_counting, "capacity_of", count)
    before = time.time()
    watched = watch("small = resources=VCPU:1\n")
    watched.shows("small", 16, 16, 1)
    first = watched.figures("small")["fits_timestamp_seconds"]
    assert first >= before
    wait_until(lambda: watched.figures("small")["fits_timestamp_seconds"] > first)
    assert len(counts) == 1
    watched.claim(1)
    watched.shows("small", 15, 15, 1)
    assert len(counts) == 2


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_counts_take_a_twentieth_of_a_cpu_at_most(
    watch: Callable[[str], Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = []

    def slow(forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> Capacity:
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        found = capacity_of(forest, query, pause)
        ends.append(time.monotonic())
        return found

    monkeypatch.setattr(query_counting, "capacity_of", slow)
    watched = watch("".join(f"q{number} = resources=VCPU:1\n" for number in range(4)))
    watched.shows("q3", 16, 16, 1)
    assert len(ends) == 4
    assert ends[-1] - ends[0] >= 3 * 20 * 0.01


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_bounds_are_shown_as_bounds_and_a_search_decides_what_they_leave_open(
    watch: Callable[[str], Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    def bounds(forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> Capacity:
        return replace(capacity_of(forest, query, pause), fits=0, at_most=9)

    monkeypatch.setattr(query_counting, "capacity_of", bounds)
    watched = watch("fits = resources=VCPU:16\nnot = resources=VCPU:17\n")
    watched.shows("fits", 0, 9, 1)
    watched.shows("not", 0, 9, 0)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_count_that_takes_too_long_leaves_the_older_figure_with_its_time(
    watch: Callable[[str], Watched],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = watch("slow = resources=VCPU:1\nquick = resources=VCPU:2\n")
    watched.shows("slow", 16, 16, 1)
    watched.shows("quick", 8, 8, 1)

    def too_long(forest: Forest, query: CandidateQuery, pause: Callable[[], None]) -> Capacity:
        if query.groups[0].resources["VCPU"] == 1:
            raise SearchTooLong("more than 10 seconds of work")
        return capacity_of(forest, query, pause)

    monkeypatch.setattr(query_counting, "capacity_of", too_long)
    watched.claim(4)
    watched.shows("quick", 6, 6, 1)
    wait_until(lambda: "the query slow is not counted" in caplog.text)
    old = watched.figures("slow")
    assert old["fits"] == 16
    quick = watched.figures("quick")["fits_timestamp_seconds"]
    wait_until(lambda: watched.figures("quick")["fits_timestamp_seconds"] > quick)
    assert watched.figures("slow") == old
    assert caplog.text.count("the query slow is not counted") == 1


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_reload_replaces_the_queries_and_a_broken_file_changes_nothing(
    watch: Callable[[str], Watched],
) -> None:
    watched = watch("same = resources=VCPU:1\nother = resources=VCPU:1\ngone = resources=VCPU:1\n")
    watched.shows("gone", 16, 16, 1)
    with pytest.raises(ConfigurationError, match="queries, line 2: "):
        watched.reload("same = resources=VCPU:1\nbroken = resources=VCPU\n")
    watched.claim(8)
    watched.shows("gone", 8, 8, 1)
    watched.reload("same = resources=VCPU:1\nother = resources=VCPU:4\n")
    watched.shows("other", 2, 2, 1)
    watched.shows("same", 8, 8, 1)
    wait_until(lambda: watched.figures("gone") == {})
    watched.reload("")
    wait_until(lambda: watched.figures("same") == {})


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ok = resources=VCPU:1\nx = resources=VCPU:none\n", "line 2: the query x cannot be used"),
        ("x = resources=VCPU:1&in_tree=\n", "line 1: the query x"),
        ("x = limit=3\n", "line 1: the query x"),
        ("resources\n", "line 1: 'resources' is no named query"),
        ("x =\n", "line 1: 'x =' is no named query"),
        ("a b = resources=VCPU:1\n", "line 1: 'a b' cannot be a name"),
        ('x"} = resources=VCPU:1\n', "cannot be a name"),
        (f"{'x' * 65} = resources=VCPU:1\n", "64 characters at most"),
        (
            "x = resources=VCPU:1\n#\nx = resources=VCPU:2\n",
            "line 3: the name x stands in .*line 1",
        ),
        ("".join(f"q{n} = resources=VCPU:1\n" for n in range(501)), "line 501: .*500 queries"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_at_start_with_its_line(
    database: Database, tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        Application(settings_with(text, tmp_path, settings_for(database, tmp_path)), database)


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_missing_file_is_refused_at_start(database: Database, tmp_path: Path) -> None:
    text = "[api]\nauth_strategy = noauth2\n[roost]\nmetrics_queries = /nowhere/queries\n"
    with pytest.raises(ConfigurationError, match="/nowhere/queries cannot be read: No such file"):
        settings_for(database, tmp_path, text)
