"""`roost audit`: orphans against a list, what is deleted, and the exit status."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import roost
from support.stubs.placement_stub import HangUp, PlacementStub, Received, Reply, Step
from support.transports.tampering import one_server

NOT_THERE = "5e2b1c1e-8a2c-4a39-9d6d-0a7c3a6a9f11"


class Claims:
    """Two consumers of a type that no other test has; the program knows the first one."""

    def __init__(self, providers: LiveProviders) -> None:
        self._providers = providers
        self.kind = providers.custom("KIND")
        self.known, self.orphan = (providers.uuid(short) for short in ("known", "orphan"))
        host = providers.add("host", totals={"VCPU": 8})
        for uuid in (self.known, self.orphan):
            body = {
                "allocations": {host: {"resources": {"VCPU": 1}}},
                "project_id": "project",
                "user_id": "user",
                "consumer_generation": None,
                "consumer_type": self.kind,
            }
            providers.send("PUT", f"/allocations/{uuid}", body)
        Path("known.txt").write_text(f"# servers\n\n  {self.known.upper()}\n")

    def holders(self) -> list[str]:
        """Those of the two that hold something."""
        both = ("known", "orphan")
        return [short for short in both if self._providers.consumer(short)["allocations"]]


@pytest.fixture
def claims(live_providers: LiveProviders) -> Claims:
    made = Claims(live_providers)
    # The list begins a second after the claims, so they are not too new for it.
    time.sleep(1.1)
    os.utime("known.txt")
    return made


@one_server
def test_a_consumer_that_the_list_lacks_is_an_orphan(claims: Claims) -> None:
    found = roost("audit", "--against", "known.txt", "--type", claims.kind)
    assert found.status == 3, found.err
    titles, *lines = found.lines
    assert titles.split() == ["KIND", "WHAT", "TEXT", "MEND"]
    orphans = [line for line in lines if line.startswith("orphan ")]
    assert len(orphans) == 1
    assert orphans[0].split()[1] == claims.orphan
    assert orphans[0].endswith(f"  DELETE /allocations/{claims.orphan}")
    assert claims.holders() == ["known", "orphan"]


@one_server
def test_the_list_may_come_from_standard_input(claims: Claims) -> None:
    words = ("audit", "--against", "-", "--type", claims.kind, "--json")
    found = roost(*words, stdin=f"{claims.known}\n").json
    assert found["counts"]["orphan"] == 1
    assert claims.orphan in [finding["consumer"] for finding in found["findings"]]
    both = roost(*words, stdin=f"{claims.known}\n{claims.orphan}\n").json
    assert "orphan" not in both["counts"]


@one_server
def test_a_consumer_that_is_newer_than_the_file_is_no_orphan(claims: Claims) -> None:
    an_hour_ago = time.time() - 3600
    os.utime("known.txt", (an_hour_ago, an_hour_ago))
    found = roost("audit", "--against", "known.txt", "--type", claims.kind, "--json").json
    assert "orphan" not in found["counts"]


@one_server
def test_orphans_are_deleted_on_request_and_after_a_dry_run(claims: Claims) -> None:
    words = ("audit", "--against", "known.txt", "--type", claims.kind, "--delete")
    refused = roost(*words, "--at-most-percent", "0")
    assert (refused.status, refused.out) == (1, "")
    assert "orphans: not deleted" in refused.err
    assert "Next: roost audit --help" in refused.err
    permitted = (*words, "--at-most-percent", "100")
    planned = roost(*permitted, "--dry-run")
    assert planned.status == 3, planned.err
    (line,) = [line for line in planned.lines if claims.orphan in line]
    assert "  would be deleted  " in line
    assert roost(*permitted, "--dry-run", "--json").json["dry_run"] is True
    assert claims.holders() == ["known", "orphan"]
    done = roost(*permitted)
    (line,) = [line for line in done.lines if claims.orphan in line]
    assert "  deleted  " in line
    assert claims.holders() == ["known"]


@one_server
@pytest.mark.parametrize(
    ("arguments", "content", "status", "words"),
    [
        (["--against", "list"], f"{NOT_THERE}\n\nhost-1\n", 1, "list, line 3: 'host-1' is no uuid"),
        (["--against", "list", "--delete"], "# none\n", 1, "list has no uuid"),
        (["--against", "none"], "", 1, "none cannot be used: No such file"),
        (["--delete"], "", 2, "need --against"),
        (["--type", "INSTANCE"], "", 2, "need --against"),
        (["--at-most-percent", "5"], "", 2, "needs --delete"),
    ],
)
def test_a_wrong_list_or_option_is_refused(
    live_providers: LiveProviders, arguments: list[str], content: str, status: int, words: str
) -> None:
    del live_providers
    Path("list").write_text(content)
    outcome = roost("audit", *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert words in outcome.err


class AuditStub(PlacementStub):
    """A server that answers an audit with steps of the test."""

    def __init__(self, *steps: Step) -> None:
        super().__init__(otherwise=self._answer)
        self.steps = list(steps)
        self.audits: list[Received] = []

    def _answer(self, request: Received) -> Step:
        if request.path == "/":
            version = {"id": "v1.0", "min_version": "1.0", "max_version": "1.39"}
            return Reply(body={"versions": [version]})
        self.audits.append(request)
        return self.steps.pop(0)


def page(number: int, following: str | None) -> Reply:
    finding = {
        "kind": "empty_consumer",
        "provider": None,
        "consumer": f"{number}",
        "text": "It holds nothing.",
        "mend": None,
        "deleted": False,
    }
    counts = {"empty_consumer": 2}
    return Reply(body={"findings": [finding], "counts": counts, "consumers": 9, "next": following})


def test_all_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with AuditStub(page(1, "abc"), page(2, None)) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        found = roost("audit", "--json")
    assert found.status == 3
    assert [finding["consumer"] for finding in found.json["findings"]] == ["1", "2"]
    assert stub.audits[1].path.endswith("&marker=abc")


def test_a_further_page_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("known.txt").write_text(NOT_THERE)
    with AuditStub(page(1, "abc"), page(2, None)) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        assert roost("audit", "--against", "known.txt", "--delete").status == 3
    assert [json.loads(request.body)["delete"] for request in stub.audits] == [True, False]


def test_a_deletion_whose_answer_is_lost_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("known.txt").write_text(NOT_THERE)
    with AuditStub(HangUp(), page(1, None)) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        outcome = roost("audit", "--against", "known.txt", "--delete")
    assert outcome.status == 1
    assert "orphans: perhaps deleted" in outcome.err
    assert len(stub.audits) == 1


def test_a_server_without_audits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with AuditStub(
        Reply(404, {"errors": [{"detail": "The resource could not be found."}]})
    ) as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        outcome = roost("audit")
    assert outcome.status == 1
    assert "it does not offer /roost/audit" in outcome.err
    assert outcome.err.rstrip().endswith("Next: roost doctor")
