"""Keystone that is down, silent, broken or misconfigured: bounded waits, and threads that stay."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from roost.api.authentication import look_ups
from support.api_client import Answer, ApiClient, Configured
from support.stubs.identity_stub import IdentityStub
from support.waiting import wait_until

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)

HASTY = "[roost]\nkeystone_wait_seconds = 1\n"
PATIENT = "[roost]\nkeystone_wait_seconds = 3600\n"


def ask(api: ApiClient, token: str | None) -> Answer:
    return replace(api, token=token).get("/traits")


def serve(api: ApiClient, token: str) -> None:
    """Ask until Keystone answers in time; a busy machine may delay it."""
    wait_until(lambda: ask(api, token).status == 200)


@contextmanager
def asked_at_once(api: ApiClient, tokens: list[str]) -> Iterator[list[Future[Answer]]]:
    """Requests with these tokens, each in a thread of its own."""
    with ThreadPoolExecutor(len(tokens)) as pool:
        yield [pool.submit(ask, api, token) for token in tokens]


def test_known_tokens_outlive_keystone_and_others_are_answered_with_503(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(identity.section)
    identity.add("known", "admin")
    identity.add("unknown", "admin")
    assert ask(api, "known").status == 200
    identity.stop()
    assert ask(api, "known").status == 200
    assert ask(api, None).status == 401
    answer = ask(api, "unknown")
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"
    assert "identity service" in answer.detail
    assert str(identity.port) not in answer.body.decode()
    identity.start()
    assert ask(api, "unknown").status == 200


def test_the_service_starts_without_keystone_and_finds_it_later(
    identity: IdentityStub, configured: Configured
) -> None:
    identity.add("good", "admin")
    identity.stop()
    api = configured(identity.section)
    assert ask(api, None).status == 401
    assert ask(api, "good").status == 503
    identity.start()
    assert ask(api, "good").status == 200


def test_a_silent_keystone_delays_an_answer_for_a_bounded_time(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(identity.section + HASTY)
    identity.add("good", "admin")
    identity.answering.clear()
    # Keystone stays silent, so only the limit of the service ends the wait.
    assert ask(api, "good").status == 503
    with asked_at_once(api, ["probe"]) as answers:
        wait_until(lambda: identity.validations == 2)
        # One look-up finds out whether Keystone is back, so other requests need not wait.
        assert ask(api, "other").status == 503
        assert answers[0].result().status == 503
    identity.answering.set()
    serve(api, "good")


def test_the_time_out_of_the_middleware_counts_as_silence(
    identity: IdentityStub, configured: Configured, caplog: pytest.LogCaptureFixture
) -> None:
    bounds = "http_connect_timeout = 1\nhttp_request_max_retries = 0\n"
    api = configured(f"{identity.section}{bounds}{PATIENT}")
    identity.answering.clear()
    assert ask(api, "good").status == 503
    assert "Keystone does not answer" in caplog.text
    # One look-up at a time finds out whether Keystone is back.
    with asked_at_once(api, ["one", "two", "three"]) as answers:
        assert [answer.result().status for answer in answers] == [503] * 3
    assert identity.validations == 2


def test_a_silent_keystone_leaves_threads_for_other_requests(
    identity: IdentityStub, configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One address gets half of the places.
    monkeypatch.setattr(look_ups, "WAITING_MAX", 8)
    api = configured(identity.section + PATIENT)
    identity.add("known", "admin")
    assert ask(api, "known").status == 200
    tokens = [identity.add(f"token {number}", "admin") for number in range(4)]
    identity.answering.clear()
    with asked_at_once(api, tokens) as answers:
        wait_until(lambda: identity.validations == 5)
        # Keystone stays silent, so neither request waits for it.
        assert ask(api, "one more").status == 503
        assert ask(api, "known").status == 200
        identity.answering.set()
        assert [answer.result().status for answer in answers] == [200] * 4


def test_a_stuck_connection_locks_out_no_other_token(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(identity.section + HASTY)
    identity.stuck.add(identity.add("stuck", "admin"))
    tokens = [identity.add(f"token {number}", "admin") for number in range(5)]
    assert ask(api, "stuck").status == 503
    # Keystone answered no token since, so the next request asks again.
    serve(api, tokens[0])
    before = identity.validations
    with asked_at_once(api, ["stuck"]) as answers:
        wait_until(lambda: identity.validations > before)
        serve(api, tokens[1])
        assert answers[0].result().status == 503
    # Keystone answered meanwhile, so even requests at the same moment are served.
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(partial(serve, api), tokens[2:]))
    identity.stuck.clear()
    serve(api, "stuck")


def test_stuck_connections_leave_threads_for_other_tokens(
    identity: IdentityStub, configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_ups, "LOOK_UPS_MAX", 2)
    api = configured(identity.section + HASTY)
    tokens = [identity.add(f"stuck {number}", "admin") for number in range(2)]
    identity.stuck.update(tokens)
    identity.add("good", "admin")
    with asked_at_once(api, tokens) as answers:
        assert [answer.result().status for answer in answers] == [503] * 2
    serve(api, "good")


def test_requests_with_one_token_share_one_question(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(identity.section)
    identity.add("good", "admin")
    identity.answering.clear()
    with asked_at_once(api, ["good"] * 8) as answers:
        wait_until(lambda: identity.validations == 1)
        identity.answering.set()
        assert [answer.result().status for answer in answers] == [200] * 8
    assert identity.validations == 1


def test_more_tokens_than_questions_at_a_time_are_all_answered(
    identity: IdentityStub, configured: Configured
) -> None:
    api = configured(identity.section)
    tokens = [identity.add(f"token {number}", "admin") for number in range(30)]
    with asked_at_once(api, tokens) as answers:
        assert [answer.result().status for answer in answers] == [200] * 30


def test_an_account_that_keystone_refuses_is_named_in_the_log(
    identity: IdentityStub, configured: Configured, caplog: pytest.LogCaptureFixture
) -> None:
    api = configured(identity.section)
    identity.add("good", "admin")
    identity.password = "changed"
    for _ in range(3):
        answer = ask(api, "good")
        assert answer.status == 503
        assert "retry-after" in answer.headers
    lines = [text for text in caplog.messages if "refuses the service account placement" in text]
    assert len(lines) == 1
    assert "secret" not in caplog.text
    identity.password = "secret"
    assert ask(api, "good").status == 200


@pytest.mark.parametrize(
    ("status", "said"), [(500, "500"), (403, "look at tokens"), (502, "502"), (429, "429")]
)
def test_a_keystone_that_answers_with_an_error_is_503_and_says_so_in_the_log(
    identity: IdentityStub,
    configured: Configured,
    caplog: pytest.LogCaptureFixture,
    *,
    status: int,
    said: str,
) -> None:
    api = configured(identity.section)
    identity.add("good", "admin")
    identity.broken = status
    assert ask(api, "good").status == 503
    assert any("Tokens cannot be checked" in text and said in text for text in caplog.messages)
    identity.broken = None
    with caplog.at_level(logging.INFO):
        assert ask(api, "good").status == 200
    assert "Tokens can be checked again" in caplog.text


def test_a_delayed_decision_does_not_turn_an_outage_into_a_refusal(
    identity: IdentityStub, configured: Configured
) -> None:
    identity.add("good", "admin")
    api = configured(f"{identity.section}delay_auth_decision = true\n")
    identity.stop()
    assert ask(api, "good").status == 503


def test_no_token_is_in_the_log(
    identity: IdentityStub, configured: Configured, caplog: pytest.LogCaptureFixture
) -> None:
    api = configured(identity.section)
    with caplog.at_level(logging.DEBUG, "roost"), caplog.at_level(logging.INFO):
        identity.add("confidential", "admin")
        ask(api, "confidential")
        ask(api, "confidential-garbage")
        identity.stop()
        ask(api, "confidential-other")
    assert "confidential" not in caplog.text
