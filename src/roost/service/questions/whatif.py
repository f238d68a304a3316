"""What-if: changes in a private copy of the forest. Nothing is written.

`ChangeFacts` has what the changes need from the tables, besides the forest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sqlalchemy import Connection

from roost.model.capacity import exact_capacity
from roost.model.consumers import ConsumerAllocations
from roost.model.identifiers import canonical_uuid
from roost.model.imagined_changes import (
    AddTrees,
    ChangeInventory,
    ChangeTraits,
    ClaimCandidate,
    Drain,
    ImaginedChange,
    Release,
    Remove,
    named_provider,
)
from roost.model.providers import Provider
from roost.model.text import counted, plain_number
from roost.search.candidates.effort import no_pause
from roost.search.candidates.variants import ChosenCandidate
from roost.search.forest.forest import Forest
from roost.search.forest.overlay import DraftInventory, NotInOverlay, Overlay
from roost.service.errors import ErrorCode, Invalid, NotFound, UnknownResourceClass, naming_place
from roost.service.questions.candidates import check_names
from roost.service.questions.provider_list import resolve_provider
from roost.store.rows import allocations

# The providers that all changes of a request together may add. A draft takes a kilobyte each.
ADDED_PROVIDERS_MAX = 20_000

# The candidate that a claim takes from a forest; `None` without candidates.
Choose: TypeAlias = Callable[[Forest, ClaimCandidate], ChosenCandidate | None]


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change: `details` has the fields for programs, `text` a sentence."""

    change: str
    applied: bool
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangedForest:
    """A forest with all changes, and what became of each."""

    forest: Forest
    outcomes: Sequence[ChangeOutcome]
    # The names of the providers that exist in this forest only, by uuid.
    made_up: Mapping[str, str]


def apply_changes(
    forest: Forest,
    facts: ChangeFacts,
    changes: Sequence[ImaginedChange],
    choose: Choose,
    pause: Callable[[], None] = no_pause,
) -> ChangedForest:
    """The forest after these changes, in their order. A claim without a candidate is told."""
    changing = _Changing(forest, facts, choose)
    outcomes = []
    for position, change in enumerate(changes):
        pause()
        with naming_place(f"changes[{position}]"):
            outcomes.append(changing.apply(change))
    return ChangedForest(changing.overlay.forest, outcomes, changing.made_up)


class _Changing:
    """The changes of one request, in their order."""

    def __init__(self, forest: Forest, facts: ChangeFacts, choose: Choose) -> None:
        self.overlay = Overlay(forest)
        self.made_up: dict[str, str] = {}
        self._facts = facts
        self._choose = choose
        self._vocabulary = forest.vocabulary
        self._released: set[str] = set()
        self._added = 0

    def apply(self, change: ImaginedChange) -> ChangeOutcome:
        """Make one change."""
        try:
            return _METHODS[type(change)](self, change)
        except NotInOverlay as missing:
            raise Invalid(
                f"provider {named_provider(change) or missing} is gone: "
                "an earlier change removes it. "
                "Leave this change out, or send it before that change."
            ) from None

    def _drain(self, change: Drain) -> ChangeOutcome:
        provider = self._provider(change.provider)
        count = self.overlay.drain(provider.uuid)
        take = "1 inventory takes" if count == 1 else f"{count} inventories take"
        text = f"{provider.name} is drained: {take} no further allocation."
        return ChangeOutcome("drain", True, text, {"provider": _shown(provider)})

    def _remove(self, change: Remove) -> ChangeOutcome:
        provider = self._provider(change.provider)
        count = self.overlay.remove(provider.uuid)
        gone = f"{counted(count, 'provider')} {'is' if count == 1 else 'are'} gone"
        text = f"{provider.name} is removed with all below it: {gone}."
        return ChangeOutcome("remove", True, text, {"provider": _shown(provider)})

    def _change_inventory(self, change: ChangeInventory) -> ChangeOutcome:
        provider, name = self._provider(change.provider), change.resource_class
        class_id = self._vocabulary.class_ids.get(name)
        if class_id is None:
            raise UnknownResourceClass(name)
        present = self.overlay.inventory(provider.uuid, class_id)
        if present is None and "total" not in change.fields:
            raise Invalid(f"{provider.name} has no inventory of {name} yet. Send its `total`, too.")
        self.overlay.change_inventory(provider.uuid, class_id, change.fields)
        changed = self.overlay.inventory(provider.uuid, class_id)
        assert changed is not None, "the line above makes it"
        _check_capacity(f"{name} of {provider.name}", changed)
        fields = ", ".join(f"{key} {value}" for key, value in change.fields.items())
        verb = "gets a new inventory of" if present is None else "changes its inventory of"
        text = f"{provider.name} {verb} {name}: {fields}."
        return ChangeOutcome("inventory", True, text, {"provider": _shown(provider)})

    def _change_traits(self, change: ChangeTraits) -> ChangeOutcome:
        provider = self._provider(change.provider)
        added, removed = map(self._trait_ids, (change.added, change.removed))
        self.overlay.change_traits(provider.uuid, added, removed)
        gets = counted(len(added), "trait")
        text = f"{provider.name} gets {gets} and loses {len(removed)}."
        return ChangeOutcome("traits", True, text, {"provider": _shown(provider)})

    def _add_trees(self, change: AddTrees) -> ChangeOutcome:
        provider = self._provider(change.like)
        size = self.overlay.tree_size(provider.uuid)
        if len(self.made_up) + change.count * size > ADDED_PROVIDERS_MAX:
            raise Invalid(
                f"{change.count} trees of {counted(size, 'provider')} are too many: "
                f"all changes together may add {ADDED_PROVIDERS_MAX} providers. "
                "Send a lower `count`."
            )
        model_root = self._provider(provider.root_uuid)
        trees = self.overlay.add_trees(provider.uuid, change.count, empty=change.empty)
        roots = []
        for uuids in trees:
            self._added += 1
            name = f"{model_root.name}+{self._added}"
            self.made_up |= {
                uuid: f"{name}/{offset}" if offset else name for offset, uuid in enumerate(uuids)
            }
            roots.append({"uuid": uuids[0], "name": name})
        are = "is" if change.count == 1 else "are"
        text = (
            f"{counted(change.count, 'new tree')} as that of {provider.name} {are} added. "
            "All new uuids and names are made up: they exist in this answer only."
        )
        details = {"provider": _shown(provider), "made_up": True, "roots": roots}
        return ChangeOutcome("add", True, text, details)

    def _claim(self, change: ClaimCandidate) -> ChangeOutcome:
        check_names(self._vocabulary, change.query)
        chosen = self._choose(self.overlay.forest, change)
        if chosen is None:
            text = "The claim finds no candidate, so it changes nothing."
            return ChangeOutcome("claim", False, text)
        self.overlay.use(chosen.allocations)
        text = f"A new consumer claims from {counted(len(chosen.allocations), 'provider')}."
        return ChangeOutcome(
            "claim",
            True,
            text,
            {
                "root": {"uuid": chosen.root_uuid},
                "allocations": {
                    uuid: {"resources": resources} for uuid, resources in chosen.allocations.items()
                },
                "mappings": chosen.mappings,
            },
        )

    def _release(self, change: Release) -> ChangeOutcome:
        consumer = canonical_uuid(change.consumer)
        if consumer in self._released:
            raise Invalid(f"an earlier change releases consumer {consumer}. Leave one out.")
        self._released.add(consumer)
        held = self._facts.holdings[change.consumer].allocations
        self.overlay.use({each.provider_uuid: each.resources for each in held}, sign=-1)
        providers = counted(len(held), "provider")
        text = f"Consumer {consumer} gives back what it holds from {providers}."
        return ChangeOutcome("release", True, text, {"consumer": consumer})

    def _provider(self, reference: str) -> Provider:
        return self._facts.providers[reference]

    def _trait_ids(self, names: Sequence[str]) -> list[int]:
        known = self._vocabulary.trait_ids
        for name in names:
            if name not in known:
                raise Invalid(f"No such trait(s): {name}. `roost trait list` lists all traits.")
        return [known[name] for name in names]


# The method that makes each kind of change.
_METHODS: Mapping[type[ImaginedChange], Callable[[_Changing, Any], ChangeOutcome]] = {
    Drain: _Changing._drain,
    Remove: _Changing._remove,
    ChangeInventory: _Changing._change_inventory,
    ChangeTraits: _Changing._change_traits,
    AddTrees: _Changing._add_trees,
    ClaimCandidate: _Changing._claim,
    Release: _Changing._release,
}


def _check_capacity(subject: str, inventory: DraftInventory) -> None:
    """`Invalid` if the capacity is negative, with the field that makes it so."""
    total, reserved, ratio = inventory.total, inventory.reserved, inventory.allocation_ratio
    if int(exact_capacity(total, reserved, ratio)) >= 0:
        return
    if ratio < 0:
        raise Invalid(
            f"{subject} would have an allocation_ratio of {plain_number(ratio)}. "
            "Send an `allocation_ratio` of at least 0."
        )
    raise Invalid(
        f"{subject} would have {reserved} reserved of {total}. "
        "Send a `reserved` that is at most the `total`."
    )


def _shown(provider: Provider) -> dict[str, str]:
    return {"uuid": provider.uuid, "name": provider.name}


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """What changes need from the tables.

    If two readings find equal facts, the facts hold for every forest between both readings.
    """

    # By the name or uuid that the client sent. The root of a tree to copy is there by its uuid.
    providers: Mapping[str, Provider]
    # By consumer, where one releases what it holds.
    holdings: Mapping[str, ConsumerAllocations]

    def __or__(self, other: ChangeFacts) -> ChangeFacts:
        return ChangeFacts(
            {**self.providers, **other.providers},
            {**self.holdings, **other.holdings},
        )


NO_FACTS = ChangeFacts({}, {})


def read_facts(connection: Connection, change: ImaginedChange, known: ChangeFacts) -> ChangeFacts:
    """The facts for one change; `NotFound` if its provider or consumer does not exist.

    `known` has the facts for earlier changes.
    """
    providers: dict[str, Provider] = {}
    holdings: dict[str, ConsumerAllocations] = {}
    reference = named_provider(change)
    if reference is not None:
        providers[reference] = known.providers.get(reference) or resolve_provider(
            connection, reference
        )
    if isinstance(change, AddTrees):
        root = providers[change.like].root_uuid
        providers[root] = resolve_provider(connection, root)
    elif isinstance(change, Release):
        holdings[change.consumer] = _holding(connection, change.consumer)
    return ChangeFacts(providers, holdings)


def _holding(connection: Connection, consumer: str) -> ConsumerAllocations:
    found = allocations.consumer_allocations(connection, consumer)
    if found is None:
        raise NotFound(
            f"Consumer {consumer} holds nothing, so it has nothing to release. "
            "`roost consumer list` lists consumers that hold something.",
            ErrorCode.NO_SUCH_CONSUMER,
        )
    return found
