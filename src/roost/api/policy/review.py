"""A review of the policy: rules that let callers write which should not."""

from __future__ import annotations

from collections.abc import Iterator

from roost.api.http.errors import HttpError
from roost.api.http.requests import Caller
from roost.api.policy.policy import Policy
from roost.api.routes import ROUTES

_PROJECT = "a-project"
_CALLERS = {
    "every caller with a token": Caller(user="a-user", project=_PROJECT),
    "every member of a project": Caller(
        user="a-user", project=_PROJECT, roles=("member", "reader")
    ),
}


def open_writes(policy: Policy) -> Iterator[str]:
    """A sentence for each kind of caller that may write, with the rules that allow it."""
    rules = dict.fromkeys(route.rule for route in ROUTES if route.rule is not None and route.writes)
    told: set[str] = set()
    for words, caller in _CALLERS.items():
        allowed = [rule for rule in rules if rule not in told and _allows(policy, rule, caller)]
        told.update(allowed)
        if allowed:
            yield f"The policy lets {words} write: {', '.join(allowed)}. Correct these rules."


def _allows(policy: Policy, rule: str, caller: Caller) -> bool:
    try:
        policy.authorize(rule, caller, _PROJECT)
    except HttpError:
        return False
    return True
