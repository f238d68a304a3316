"""Interchangeable providers: no constraint tells them apart."""

from __future__ import annotations

from roost.search.problem import LocalProvider, Problem
from roost.search.rules import Rules


class Interchangeability:
    """Which providers of a problem are interchangeable."""

    def __init__(self, rules: Rules, problem: Problem) -> None:
        facts: dict[LocalProvider, list[object]] = {}
        for requirement_index, providers in enumerate(problem.providers):
            for provider in providers:
                facts.setdefault(provider, []).append(("meets", requirement_index))
        for position, (_, providers, rooms) in enumerate(rules.contested_rooms(problem)):
            for provider, room in zip(providers, rooms, strict=True):
                facts[provider].append(("room", position, room))
        for requirement_index, choices in zip(
            rules.unsuffixed_requirement_indexes, problem.met_trait_choices, strict=True
        ):
            for provider, bits in zip(problem.providers[requirement_index], choices, strict=True):
                facts[provider].append(("trait choices", requirement_index, bits))
        leaves = problem.leaves
        for provider, known in facts.items():
            if rules.one_provider_per_tree or (rules.plan.same_subtrees and provider not in leaves):
                known.append(("itself", provider))
            elif rules.plan.same_subtrees:
                known.append(("below", problem.parents[provider]))
        kinds: dict[tuple[object, ...], int] = {}
        self._kinds = {
            provider: kinds.setdefault(tuple(known), len(kinds))
            for provider, known in facts.items()
        }

    def kind(self, provider: LocalProvider) -> int:
        """The same integer for providers that are interchangeable."""
        return self._kinds[provider]
