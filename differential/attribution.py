"""Which known defect of the reference explains a difference between both answers.

The numbers of the defects are the same in the whole project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sides import Reply
from support.scenarios.answers import as_shown, describe, faults, summary_faults
from support.scenarios.oracle import (
    NESTED,
    Candidate,
    Query,
    World,
    candidates,
    may_give,
    one_giver_a_tree,
    passes,
    solutions,
)
from support.scenarios.requests import ANY_TRAITS, Request

SAME = "the same"
Ask = Callable[[Request], Reply]


class Unexplained(AssertionError):
    """A difference that no known defect explains."""


@dataclass(frozen=True)
class Case:
    """One request, both answers to it, and a function that asks the reference further questions."""

    world: World
    request: Request
    ours: Reply
    theirs: Reply
    ask_theirs: Ask

    @property
    def query(self) -> Query:
        """The query of the request."""
        return self.request.query


def verdict(case: Case) -> str:
    """`SAME`, or the number of the defect that explains the difference; else `Unexplained`."""
    if case.request.mishap is not None:
        return _mishap_verdict(case)
    if case.ours.status != 200 or case.ours.found is None:
        raise Unexplained(f"ours: {case.ours.status} {case.ours.text}")
    all_ = candidates(case.world, case.query)
    if wrong := list(faults(case.world, case.query, all_, case.ours.found)):
        raise Unexplained("ours breaks the rules:\n" + "\n".join(wrong))
    if case.theirs.status == 500 and _is_d3(case.world, case.query):
        return "D3"
    if case.theirs.status != 200 or case.theirs.found is None:
        raise Unexplained(f"theirs: {case.theirs.status} {case.theirs.text}")
    reasons = [_candidates_verdict(case, all_), _summaries_verdict(case)]
    return next((reason for reason in reasons if reason != SAME), SAME)


def _mishap_verdict(case: Case) -> str:
    mishap = case.request.mishap
    assert mishap is not None
    for reply, allowed in ((case.ours, mishap.ours), (case.theirs, mishap.theirs)):
        if reply.status not in allowed:
            raise Unexplained(f"{mishap.name}: {reply.status} instead of {allowed}: {reply.text}")
    if case.ours.found is not None and case.ours.found.candidates:
        raise Unexplained(f"{mishap.name}: ours has candidates")
    return SAME if case.ours.status == case.theirs.status else mishap.defect


def _candidates_verdict(case: Case, all_: set[Candidate]) -> str:
    assert case.ours.found is not None
    assert case.theirs.found is not None
    wanted = as_shown(all_, case.query.minor)
    shown = Counter(case.theirs.found.candidates)
    wrong = [its for its in shown if shown[its] > wanted[its]]
    if wrong and not _may_be_d1(case.query):
        raise Unexplained(f"theirs are too many:{describe(wrong)}")
    missing = wanted.keys() - shown.keys()
    complete = case.query.limit is None or shown.total() >= min(case.query.limit, len(wanted))
    if case.query.limit is not None and complete:
        missing = set()
    if _may_be_d1(case.query) and (wrong or missing):
        _check_d1(case, all_)
        return "D1"
    if not complete and case.query.limit is not None:
        return _unlimited_verdict(case)
    if missing:
        _check_d2(
            case, [its for its in all_ if as_shown([its], case.query.minor).keys() <= missing]
        )
        return "D2"
    if case.query.limit is None and shown != Counter(case.ours.found.candidates):
        return "D6"
    return SAME


def _summaries_verdict(case: Case) -> str:
    assert case.theirs.found is not None
    wrong = list(summary_faults(case.world, case.query, case.theirs.found))
    if not wrong:
        return SAME
    if case.query.limit is not None and case.query.minor < NESTED:
        return "8.2"
    raise Unexplained("their summaries break the rules:\n" + "\n".join(wrong))


def _may_be_d1(query: Query) -> bool:
    """Whether amounts of one candidate may leak into further candidates."""
    unsuffixed = query.unsuffixed
    return (
        unsuffixed is not None
        and query.policy != "none"
        and any(
            unsuffixed.resources.keys() & group.resources.keys()
            for group in query.groups
            if group.suffix
        )
    )


def _check_d1(case: Case, all_: set[Candidate]) -> None:
    """Compare with `group_policy=none`, where no amount leaks, and apply the policy here."""
    reply = _ask_again(case, policy="none")
    # With mappings, no two candidates look alike.
    found = {
        its
        for its in reply
        if (case.query.policy != "isolate" or _is_isolated(its))
        and (case.query.minor >= NESTED or one_giver_a_tree(case.world, its))
    }
    if strange := found - all_:
        raise Unexplained(f"theirs with group_policy=none are too many:{describe(strange)}")
    _check_d2(case, all_ - found)


def _unlimited_verdict(case: Case) -> str:
    """Find the missing candidates of a too short answer: ask again without the limit."""
    found = set(_ask_again(case, policy=case.query.policy))
    all_ = candidates(case.world, replace(case.query, limit=None))
    missing = {its for its in all_ if its not in found}
    if not missing:
        raise Unexplained("theirs are fewer than the limit and than there are")
    _check_d2(case, missing)
    return "D2"


def _ask_again(case: Case, policy: str | None) -> Iterable[Candidate]:
    """The candidates of the reference with this policy, without limit, with mappings."""
    minor = max(case.query.minor, ANY_TRAITS - 1)
    dropped = ("group_policy", "limit")
    parameters = [pair for pair in case.request.parameters if pair[0] not in dropped]
    if policy is not None:
        parameters.append(("group_policy", policy))
    query = replace(case.query, minor=minor, policy=policy, limit=None)
    reply = case.ask_theirs(Request(query, tuple(parameters)))
    if reply.found is None:
        raise Unexplained(f"theirs, asked again: {reply.status} {reply.text}")
    return reply.found.candidates


def _is_isolated(candidate: Candidate) -> bool:
    used = [uuid for suffix, uuids in candidate.mappings if suffix for uuid in uuids]
    return len(used) == len(set(used))


def _check_d2(case: Case, missing: Iterable[Candidate]) -> None:
    """In a missing candidate, several anchors must allow the unsuffixed group's providers."""
    wrong = [its for its in missing if not _is_d2(case, its)]
    if wrong:
        raise Unexplained(f"theirs lack:{describe(wrong)}")


def _is_d2(case: Case, candidate: Candidate) -> bool:
    givers = dict(candidate.mappings).get("")
    if givers is None or len(case.query.groups) == 1:
        return False
    common = set.intersection(*(case.world.anchors(giver) for giver in givers))
    return len(common) > 1


def _is_d3(world: World, query: Query) -> bool:
    """Whether a sharing child may give to further anchors while its own tree has no solution."""
    group = query.unsuffixed
    if group is None:
        return False
    for uuid, provider in world.providers.items():
        own = world.root(uuid)
        if not provider.sharing or provider.parent is None:
            continue
        gives = any(provider.has_room(name, amount) for name, amount in group.resources.items())
        elsewhere = any(may_give(world, group, root, uuid) for root in world.anchors(uuid) - {own})
        at_home = passes(world.providers[own], query) and any(
            solutions(world, group, own, world.under(own))
        )
        if gives and elsewhere and not at_home:
            return True
    return False
