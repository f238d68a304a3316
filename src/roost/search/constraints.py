"""What the choices for several parts must fulfil together, checked while choices are made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence

from roost.search.problem import Problem, Rules


class Likeness:
    """Which providers are interchangeable: nothing that a constraint looks at tells them apart."""

    def __init__(self, rules: Rules, problem: Problem) -> None:
        facts: dict[int, list[object]] = {}
        for demand, providers in enumerate(problem.providers):
            for provider in providers:
                facts.setdefault(provider, []).append(("serves", demand))
        for index, (_, providers, rooms) in enumerate(rules.contested_rooms(problem)):
            for provider, room in zip(providers, rooms, strict=True):
                facts[provider].append(("room", index, room))
        for demand, masks in zip(rules.spanning, problem.items, strict=True):
            for provider, mask in zip(problem.providers[demand], masks, strict=True):
                facts[provider].append(("items", demand, mask))
        leaves = leaves_of(problem)
        for provider, known in facts.items():
            if rules.one_provider_a_tree or (rules.plan.subtrees and provider not in leaves):
                known.append(("itself", provider))
            elif rules.plan.subtrees:
                known.append(("below", problem.parents[provider]))
        kinds: dict[tuple[object, ...], int] = {}
        self._kinds = {
            provider: kinds.setdefault(tuple(known), len(kinds))
            for provider, known in facts.items()
        }

    def kind(self, provider: int) -> int:
        """The same number for providers that are interchangeable."""
        return self._kinds[provider]


def leaves_of(problem: Problem) -> set[int]:
    """Those members of the tree, as far as it is known, that have nobody below them."""
    return set(range(len(problem.parents))) - set(problem.parents)


def constraints_of(rules: Rules, problem: Problem, order: Sequence[int]) -> list[Constraint]:
    """Those that a query has; parts will be chosen for in this order."""
    found: list[Constraint] = []
    if rules.plan.isolated:
        found.append(_Apart(rules))
    if rules.contests:
        found.append(_Room(rules, problem))
    if rules.plan.items:
        found.append(_Items(rules, problem, order))
    if rules.plan.subtrees:
        found.append(_Subtrees(rules, problem, order))
    if rules.one_provider_a_tree:
        found.append(_OneATree(rules))
    return found


class Constraint(ABC):
    """Something that the choices for several parts must fulfil together."""

    @abstractmethod
    def take(self, depth: int, part: int, provider: int) -> bool:
        """Note the choice and return true; or, if it breaks the rule, only return false."""

    @abstractmethod
    def release(self, part: int, provider: int) -> None:
        """Take back the last choice."""

    def state(self) -> Hashable:
        """What must be equal in two branches for the same to be possible below them."""
        return None

    def held(self) -> Iterable[tuple[int, Hashable]]:
        """The same for single providers, as far as it is theirs: they may be exchanged."""
        return ()


class _Apart(Constraint):
    """`group_policy=isolate`: suffixed groups do not share a provider."""

    def __init__(self, rules: Rules) -> None:
        self._parts = frozenset(rules.plan.isolated)
        self._taken: set[int] = set()

    def take(self, depth: int, part: int, provider: int) -> bool:
        if part in self._parts:
            if provider in self._taken:
                return False
            self._taken.add(provider)
        return True

    def release(self, part: int, provider: int) -> None:
        if part in self._parts:
            self._taken.remove(provider)

    def held(self) -> Iterable[tuple[int, Hashable]]:
        return ((provider, "taken") for provider in self._taken)


class _Room(Constraint):
    """What parts take of one class from one provider has room together."""

    def __init__(self, rules: Rules, problem: Problem) -> None:
        # For each part, (class, amount) of what others want as well.
        self._amounts: list[list[tuple[int, int]]] = [[] for _ in rules.demands]
        self._room: dict[tuple[int, int], int] = {}
        for contest in rules.contests:
            for part, amount in contest.amounts.items():
                self._amounts[part].append((contest.class_id, amount))
        for contest, providers, rooms in rules.contested_rooms(problem):
            for provider, room in zip(providers, rooms, strict=True):
                self._room[provider, contest.class_id] = room
        self._taken: dict[tuple[int, int], int] = {}

    def take(self, depth: int, part: int, provider: int) -> bool:
        amounts, taken = self._amounts[part], self._taken
        for class_id, amount in amounts:
            key = provider, class_id
            if taken.get(key, 0) + amount > self._room[key]:
                return False
        for class_id, amount in amounts:
            key = provider, class_id
            taken[key] = taken.get(key, 0) + amount
        return True

    def release(self, part: int, provider: int) -> None:
        for class_id, amount in self._amounts[part]:
            self._taken[provider, class_id] -= amount

    def held(self) -> Iterable[tuple[int, Hashable]]:
        return (
            (provider, (class_id, amount))
            for (provider, class_id), amount in self._taken.items()
            if amount
        )


class _Items(Constraint):
    """The providers of the unsuffixed group have all required traits together."""

    def __init__(self, rules: Rules, problem: Problem, order: Sequence[int]) -> None:
        self._all = rules.all_items
        by_demand = {
            demand: dict(zip(problem.providers[demand], masks, strict=True))
            for demand, masks in zip(rules.spanning, problem.items, strict=True)
        }
        self._masks = [by_demand.get(rules.demands[part], {}) for part in range(len(order))]
        # What the parts that come after each depth can add at best.
        self._later = [0] * len(order)
        for depth in range(len(order) - 2, -1, -1):
            masks = self._masks[order[depth + 1]].values()
            self._later[depth] = self._later[depth + 1]
            for mask in masks:
                self._later[depth] |= mask
        self._met = [0]

    def take(self, depth: int, part: int, provider: int) -> bool:
        met = self._met[-1] | self._masks[part].get(provider, 0)
        if met | self._later[depth] != self._all:
            return False
        self._met.append(met)
        return True

    def release(self, part: int, provider: int) -> None:
        self._met.pop()

    def state(self) -> Hashable:
        return self._met[-1]


class _Subtrees(Constraint):
    """`same_subtree`: one of the providers is above all the others, or is all of them."""

    def __init__(self, rules: Rules, problem: Problem, order: Sequence[int]) -> None:
        subtrees = rules.plan.subtrees
        # For each part the numbers of the subtrees that it is in.
        self._of_part: list[list[int]] = [[] for _ in order]
        for number, parts in enumerate(subtrees):
            for part in parts:
                self._of_part[part].append(number)
        self._above = _ancestors(rules, problem)
        self._leaves = {_bit(leaf): leaf for leaf in leaves_of(problem)}
        self._leaf_bits = sum(self._leaves)
        # For each subtree and depth: whom the parts that come later could still choose.
        self._later: list[list[int]] = []
        choices = [
            sum(map(_bit, problem.providers[demand])) for demand in range(len(problem.providers))
        ]
        for members in map(frozenset, subtrees):
            later = [0] * len(order)
            for depth in range(len(order) - 2, -1, -1):
                part = order[depth + 1]
                later[depth] = later[depth + 1]
                if part in members:
                    later[depth] |= choices[rules.demands[part]]
            self._later.append(later)
        everybody = -1
        # For each subtree: who is above all that were chosen, and who was chosen.
        self._states: list[tuple[tuple[int, int], ...]] = [tuple((everybody, 0) for _ in subtrees)]

    def take(self, depth: int, part: int, provider: int) -> bool:
        after = list(self._states[-1])
        for number in self._of_part[part]:
            above, chosen = after[number]
            above &= self._above[provider]
            chosen |= _bit(provider)
            if not above & (chosen | self._later[number][depth]):
                return False
            after[number] = above, chosen
        self._states.append(tuple(after))
        return True

    def release(self, part: int, provider: int) -> None:
        self._states.pop()

    def state(self) -> Hashable:
        nodes = ~self._leaf_bits
        return tuple((above & nodes, above & chosen & nodes) for above, chosen in self._states[-1])

    def held(self) -> Iterable[tuple[int, Hashable]]:
        # A leaf is above nobody but itself, so it is above all that were chosen only alone.
        for number, (above, chosen) in enumerate(self._states[-1]):
            leaf = above & chosen & self._leaf_bits
            if leaf:
                yield self._leaves[leaf], ("alone", number)


class _OneATree(Constraint):
    """Before 1.29: of each tree, one provider at most."""

    def __init__(self, rules: Rules) -> None:
        self._lenders = rules.lenders.members
        # For each tree the provider that is taken, and how often.
        self._taken: dict[object, tuple[int, int]] = {}

    def take(self, depth: int, part: int, provider: int) -> bool:
        home = self._home(provider)
        taken, times = self._taken.get(home, (provider, 0))
        if taken != provider and times:
            return False
        self._taken[home] = provider, times + 1
        return True

    def release(self, part: int, provider: int) -> None:
        home = self._home(provider)
        self._taken[home] = provider, self._taken[home][1] - 1

    def state(self) -> Hashable:
        return frozenset(taken for taken, times in self._taken.values() if times)

    def _home(self, provider: int) -> object:
        return None if provider >= 0 else self._lenders[~provider].home


def _bit(provider: int) -> int:
    """A bit of its own for every member of the tree and every lender."""
    return 1 << (2 * provider if provider >= 0 else -2 * provider - 1)


def _ancestors(rules: Rules, problem: Problem) -> dict[int, int]:
    """For everybody who could be chosen: who is above him, or himself, as bits."""
    above: dict[int, int] = {}
    for provider in {provider for several in problem.providers for provider in several}:
        if provider < 0:
            # Lenders are above one another only within their own tree.
            above[provider] = sum(_bit(~number) for number in rules.lenders.above(~provider))
            continue
        place, mask = provider, 0
        # Trees have no loops, but who knows what others wrote into the database.
        while place >= 0 and not mask & _bit(place):
            mask |= _bit(place)
            place = problem.parents[place]
        above[provider] = mask
    return above
