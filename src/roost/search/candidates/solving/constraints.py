"""Constraints: what the providers of several slots must fulfil together.

The solver checks them while it chooses the provider of each slot. Providers are interchangeable if
no constraint tells them apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence

from roost.search.candidates.rules import Rules
from roost.search.candidates.solving.problem import LocalProvider, Problem


def constraints_of(rules: Rules, problem: Problem, order: Sequence[int]) -> list[Constraint]:
    """The constraints of a query; the solver chooses for the slots in this order."""
    found: list[Constraint] = [_Isolation(slots) for slots in rules.plan.isolated_sets]
    if rules.contested_classes:
        found.append(_ContestedRoom(rules, problem))
    if rules.plan.trait_choices:
        found.append(_TraitChoices(rules, problem, order))
    if rules.plan.same_subtrees:
        found.append(_SameSubtrees(rules, problem, order))
    if rules.one_provider_per_tree:
        found.append(_OneProviderPerTree(rules))
    return found


class Constraint(ABC):
    """Something that the providers of several slots must fulfil together."""

    @abstractmethod
    def take(self, depth: int, slot: int, provider: LocalProvider) -> bool:
        """Note the pick and return true; a pick that breaks the constraint returns false."""

    @abstractmethod
    def release(self, slot: int, provider: LocalProvider) -> None:
        """Take back the last pick."""

    def state(self) -> Hashable:
        """Branches with equal states allow the same picks below them."""
        return None

    def held(self) -> Iterable[tuple[LocalProvider, Hashable]]:
        """The share of the state that belongs to single providers, which may be exchanged."""
        return ()


class _Isolation(Constraint):
    """`group_policy=isolate` and `isolate`: no two groups of a set have the same provider."""

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = frozenset(slots)
        self._taken: set[LocalProvider] = set()

    def take(self, depth: int, slot: int, provider: LocalProvider) -> bool:
        if slot in self._slots:
            if provider in self._taken:
                return False
            self._taken.add(provider)
        return True

    def release(self, slot: int, provider: LocalProvider) -> None:
        if slot in self._slots:
            self._taken.remove(provider)

    def held(self) -> Iterable[tuple[LocalProvider, Hashable]]:
        return ((provider, self._slots) for provider in self._taken)


class _ContestedRoom(Constraint):
    """A provider has room for all that the slots take of one class from it together."""

    def __init__(self, rules: Rules, problem: Problem) -> None:
        # For each slot, (class, amount) of its contested classes.
        self._amounts: list[list[tuple[int, int]]] = [[] for _ in rules.requirement_index_by_slot]
        self._room: dict[tuple[LocalProvider, int], int] = {}
        for contested in rules.contested_classes:
            for slot, amount in contested.amount_by_slot.items():
                self._amounts[slot].append((contested.class_id, amount))
        for contested, providers, rooms in rules.contested_rooms(problem):
            for provider, room in zip(providers, rooms, strict=True):
                self._room[provider, contested.class_id] = room
        self._taken: dict[tuple[LocalProvider, int], int] = {}

    def take(self, depth: int, slot: int, provider: LocalProvider) -> bool:
        amounts, taken = self._amounts[slot], self._taken
        for class_id, amount in amounts:
            key = provider, class_id
            if taken.get(key, 0) + amount > self._room[key]:
                return False
        for class_id, amount in amounts:
            key = provider, class_id
            taken[key] = taken.get(key, 0) + amount
        return True

    def release(self, slot: int, provider: LocalProvider) -> None:
        for class_id, amount in self._amounts[slot]:
            self._taken[provider, class_id] -= amount

    def held(self) -> Iterable[tuple[LocalProvider, Hashable]]:
        return (
            (provider, (class_id, amount))
            for (provider, class_id), amount in self._taken.items()
            if amount
        )


class _TraitChoices(Constraint):
    """The providers of the unsuffixed group meet all trait choices together."""

    def __init__(self, rules: Rules, problem: Problem, order: Sequence[int]) -> None:
        self._all = rules.all_trait_choices
        by_requirement = {
            requirement_index: dict(zip(problem.providers[requirement_index], choices, strict=True))
            for requirement_index, choices in zip(
                rules.unsuffixed_requirement_indexes, problem.met_trait_choices, strict=True
            )
        }
        # For each slot the bits of each provider.
        self._bits = [
            by_requirement.get(rules.requirement_index_by_slot[slot], {})
            for slot in range(len(order))
        ]
        # What the slots after each depth can add at best.
        self._later = [0] * len(order)
        for depth in range(len(order) - 2, -1, -1):
            self._later[depth] = self._later[depth + 1]
            for bits in self._bits[order[depth + 1]].values():
                self._later[depth] |= bits
        self._met = [0]

    def take(self, depth: int, slot: int, provider: LocalProvider) -> bool:
        met = self._met[-1] | self._bits[slot].get(provider, 0)
        if met | self._later[depth] != self._all:
            return False
        self._met.append(met)
        return True

    def release(self, slot: int, provider: LocalProvider) -> None:
        self._met.pop()

    def state(self) -> Hashable:
        return self._met[-1]


class _SameSubtrees(Constraint):
    """`same_subtree`: one of the providers is above all other ones, or is the only one."""

    def __init__(self, rules: Rules, problem: Problem, order: Sequence[int]) -> None:
        subtrees = rules.plan.same_subtrees
        # For each slot the subtrees that it is in, by their position in the plan.
        self._of_slot: list[list[int]] = [[] for _ in order]
        for subtree, slots in enumerate(subtrees):
            for slot in slots:
                self._of_slot[slot].append(subtree)
        self._above = _ancestors(rules, problem)
        self._leaves = {_bit(leaf): leaf for leaf in problem.leaves}
        self._leaf_bits = sum(self._leaves)
        # For each subtree and depth: the providers that could still fill the slots that follow.
        self._later: list[list[int]] = []
        eligible = [sum(map(_bit, providers)) for providers in problem.providers]
        for slots_together in map(frozenset, subtrees):
            later = [0] * len(order)
            for depth in range(len(order) - 2, -1, -1):
                slot = order[depth + 1]
                later[depth] = later[depth + 1]
                if slot in slots_together:
                    later[depth] |= eligible[rules.requirement_index_by_slot[slot]]
            self._later.append(later)
        every_provider = -1
        # For each subtree: the providers above all that were chosen, and those that were chosen.
        self._states: list[tuple[tuple[int, int], ...]] = [
            tuple((every_provider, 0) for _ in subtrees)
        ]

    def take(self, depth: int, slot: int, provider: LocalProvider) -> bool:
        after = list(self._states[-1])
        for subtree in self._of_slot[slot]:
            above, chosen = after[subtree]
            above &= self._above[provider]
            chosen |= _bit(provider)
            if not above & (chosen | self._later[subtree][depth]):
                return False
            after[subtree] = above, chosen
        self._states.append(tuple(after))
        return True

    def release(self, slot: int, provider: LocalProvider) -> None:
        self._states.pop()

    def state(self) -> Hashable:
        nodes = ~self._leaf_bits
        return tuple((above & nodes, above & chosen & nodes) for above, chosen in self._states[-1])

    def held(self) -> Iterable[tuple[LocalProvider, Hashable]]:
        # A leaf is above no provider but itself. So it is above all chosen providers only if it is
        # the only one.
        for subtree, (above, chosen) in enumerate(self._states[-1]):
            leaf = above & chosen & self._leaf_bits
            if leaf:
                yield self._leaves[leaf], ("alone", subtree)


class _OneProviderPerTree(Constraint):
    """Before 1.29: of each tree, one provider at most."""

    def __init__(self, rules: Rules) -> None:
        self._sharing_providers = rules.sharing_providers.providers
        # For each tree the provider that is taken, and how often.
        self._taken: dict[object, tuple[LocalProvider, int]] = {}

    def take(self, depth: int, slot: int, provider: LocalProvider) -> bool:
        tree = self._tree(provider)
        taken, times = self._taken.get(tree, (provider, 0))
        if taken != provider and times:
            return False
        self._taken[tree] = provider, times + 1
        return True

    def release(self, slot: int, provider: LocalProvider) -> None:
        tree = self._tree(provider)
        self._taken[tree] = provider, self._taken[tree][1] - 1

    def state(self) -> Hashable:
        return frozenset(taken for taken, times in self._taken.values() if times)

    def _tree(self, provider: LocalProvider) -> object:
        return None if provider >= 0 else self._sharing_providers[~provider].own_tree


def _bit(provider: LocalProvider) -> int:
    """A bit of its own for every provider of the tree and every sharing provider."""
    return 1 << (2 * provider if provider >= 0 else -2 * provider - 1)


def _ancestors(rules: Rules, problem: Problem) -> dict[LocalProvider, int]:
    """For every provider that could be chosen: itself and the providers above it, as bits."""
    above: dict[LocalProvider, int] = {}
    for provider in {provider for several in problem.providers for provider in several}:
        if provider < 0:
            # A sharing provider is above another one only if both have one tree.
            above[provider] = sum(
                _bit(~above_it) for above_it in rules.sharing_providers.above(~provider)
            )
            continue
        offset, bits = provider, 0
        # Another service may have written a loop into the database.
        while offset >= 0 and not bits & _bit(offset):
            bits |= _bit(offset)
            offset = problem.parents[offset]
        above[provider] = bits
    return above


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
