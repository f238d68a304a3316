"""Resilience in words: why what a lost root holds does not fit on the rest."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from roost.search.forest.rows import AllocationRows
from roost.search.forest.vocabulary import Vocabulary
from roost.search.resilience.holdings import HoldingKind
from roost.search.resilience.resilience import LossOutcome, LostRoot
from roost.store.forest.reading import read_allocations

_TIES = {
    "reaches": "reach the roots where the consumers keep the rest",
    "reached by": "are reached by the sharing providers where the consumers keep the rest",
}


def list_all_allocations(connection: Connection, pause: Callable[[], None]) -> AllocationRows:
    """What all consumers hold, at the moment of the connection's snapshot."""
    return read_allocations(connection, pause)


def loss_sentence(root: LostRoot, name: str, vocabulary: Vocabulary) -> str:
    """Why the rest would not survive the loss of the root with this name."""
    consumers = "1 consumer holds" if root.consumers == 1 else f"{root.consumers} consumers hold"
    return f"What {consumers} from {name} {_reason(root, vocabulary)}."


def _reason(root: LostRoot, vocabulary: Vocabulary) -> str:
    verdict = root.verdict
    match verdict.outcome:
        case LossOutcome.TOO_LITTLE:
            assert verdict.class_id is not None, "this outcome names a class"
            name = vocabulary.class_names.get(verdict.class_id, "a resource class")
            return f"does not fit elsewhere: all other roots together have too little {name} left"
        case LossOutcome.NO_PLACE:
            assert verdict.kind is not None, "this outcome names a kind"
            wanted = ", ".join(
                f"{amount} {vocabulary.class_names.get(class_id, 'of a resource class')}"
                for class_id, amount in verdict.kind.amounts.items()
            )
            room = f"have room for {wanted} at once"
            conditions = " and ".join([room, *_tie_phrases(verdict.kind)])
            return f"does not fit elsewhere: too few other roots {conditions}"
        case LossOutcome.NO_ARRANGEMENT:
            return "does not fit elsewhere: each consumer has a place, but not all of them at once"
        case _:
            return "may not fit elsewhere: the search found no arrangement before it had to end"


def _tie_phrases(kind: HoldingKind) -> list[str]:
    """What the new root must be tied to, because each consumer keeps the rest of its holdings."""
    relations = {relation for relation, _ in kind.ties}
    return [phrase for relation, phrase in _TIES.items() if relation in relations]
