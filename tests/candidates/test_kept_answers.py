"""Answers that use what earlier answers left are, byte for byte, those of a search from scratch.

Stories of random clouds have tiny blocks, and every question is asked again after every write.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from roost.api.application import Application
from roost.api.candidates.handler import list_allocation_candidates
from roost.api.candidates.kept_answers import KeptAnswers
from roost.api.candidates.summaries import SummaryCache
from roost.api.http.errors import HttpError
from roost.api.http.microversions import Microversion
from roost.api.http.requests import Request
from roost.api.services import Services
from roost.configuration.settings import Settings
from roost.model.limits import Limits
from roost.search.candidates import kept_work
from roost.search.candidates.kept_work import SearchWork
from roost.search.candidates.scan import scan_block
from roost.service.errors import Invalid
from roost.store.database import Database
from support.api_client import ApiClient, application_client, settings_for
from support.properties import many
from support.scenarios import requests
from support.scenarios.cloud import Ask, Writer
from support.scenarios.scenario import Scenario, Step, tell
from support.store.table_cleaning import clean_tables

pytestmark = [
    pytest.mark.hypothesis,
    pytest.mark.parametrize("kind", ["sqlite"], indirect=True),
]

# The number of stories.
EXAMPLES = many(10)
# So many of the latest questions are asked again after each write.
REPEATED = 6


@dataclass(frozen=True)
class Question:
    """A query string and a version."""

    text: str
    minor: int


def questions_of(step: Step) -> Iterator[Question]:
    """The question of a request, and the same with limits that the first blocks can fill."""
    if not isinstance(step, requests.Request) or step.mishap:
        return
    text = step.path.partition("?")[2]
    yield Question(text, step.query.minor)
    if step.query.minor >= requests.LIMIT and step.query.limit is None:
        yield from (Question(f"{text}&limit={limit}", step.query.minor) for limit in (1, 4))


def answer(services: Services, question: Question) -> Any:
    """What the services answer: headers and body, or the refusal."""
    request = Request({"REQUEST_METHOD": "GET", "QUERY_STRING": question.text}, Limits())
    request.version = Microversion(1, question.minor)
    try:
        found = list_allocation_candidates.handler(services, request)
    except (HttpError, Invalid) as refusal:
        return str(refusal)
    body = found.body if found.stream is None else b"".join(found.stream)
    return [header for header in found.headers if header[0] != "last-modified"], body


def content(answer: Any) -> Any:
    """What an answer says, in which the order of resource classes does not count."""
    return answer if isinstance(answer, str) else (answer[0], json.loads(answer[1]))


def compare_with_scratch(services: Services, questions: list[Question]) -> None:
    """Compare answers from the caches of the services with answers from empty caches.

    A tree that moves to another block keeps its summary. There, a new summary may name its
    resource classes in another order. So bytes are compared between answers with one cache of
    summaries.
    """
    for question in dict.fromkeys(questions):
        kept = answer(services, question)
        searched = replace(services, answers=KeptAnswers())
        assert kept == answer(searched, question), question
        scratch = replace(searched, answers=KeptAnswers(), summaries=SummaryCache())
        assert content(kept) == content(answer(scratch, question)), question


def asking(api: ApiClient) -> Ask:
    def ask(method: str, path: str, version: str, body: Any) -> tuple[int, Any]:
        answer = api.at(version).request(method, path, body)
        return answer.status, answer.json if answer.body else None

    return ask


def tell_to_caches(database: Database, settings: Settings) -> None:
    """Tell stories to one application, and ask all questions again after every write."""

    def check(scenario: Scenario) -> None:
        database.write_at_once(clean_tables)
        writer = Writer(asking(application_client(Application(settings, database))))
        services = Services.on(settings, database)
        questions: list[Question] = []
        for step in scenario.steps:
            if isinstance(step, requests.Request):
                questions += questions_of(step)
            else:
                step.send(writer)
            compare_with_scratch(services, questions[-REPEATED:])

    tell(EXAMPLES, check)


@pytest.fixture
def _tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.search.forest.block_building.BLOCK_PROVIDERS", 3)
    monkeypatch.setattr("roost.search.forest.forest.BLOCK_PROVIDERS", 3)
    monkeypatch.setattr("roost.search.candidates.scan._FIRST_TREES", 1)


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts how often the stories use what earlier answers left."""
    counted: Counter[str] = Counter()
    answer, scan = KeptAnswers.answer, SearchWork._scan

    def counting_answer(self: KeptAnswers, *args: Any) -> Any:
        found = answer(self, *args)
        counted["answers"] += found is not None
        return found

    def counting_scan(self: SearchWork, *args: Any) -> Any:
        counted["looks"] += 1
        return scan(self, *args)

    def counting_scan_block(*args: Any) -> Any:
        counted["scans"] += 1
        return scan_block(*args)

    monkeypatch.setattr(KeptAnswers, "answer", counting_answer)
    monkeypatch.setattr(SearchWork, "_scan", counting_scan)
    monkeypatch.setattr(kept_work, "scan_block", counting_scan_block)
    return counted


@pytest.mark.usefixtures("_tiny_blocks")
def test_every_repeated_answer_is_that_of_a_search_from_scratch(
    database: Database, tmp_path: Path, uses: Counter[str]
) -> None:
    tell_to_caches(database, settings_for(database, tmp_path))
    # Stories that use no kept work would prove nothing. Hypothesis takes constants from the modules
    # of a run, so the stories of two runs differ.
    assert uses["answers"] > 5 * EXAMPLES
    assert uses["looks"] > uses["scans"] * 3 // 2


@pytest.mark.usefixtures("_tiny_blocks")
def test_kept_work_that_has_no_more_room_changes_no_answer(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_work, "_WORDS_MAX", 200)
    monkeypatch.setattr("roost.api.candidates.kept_answers.BYTES_MAX", 16_000)
    monkeypatch.setattr("roost.api.candidates.kept_answers._QUESTION_BYTES_MAX", 8000)
    monkeypatch.setattr("roost.api.candidates.kept_answers._OUTDATED_MAX", 3)
    tell_to_caches(database, settings_for(database, tmp_path))
