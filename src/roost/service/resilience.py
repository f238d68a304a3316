"""Resilience in words: why what a lost root holds does not fit on the rest."""

from __future__ import annotations

from sqlalchemy import Connection

from roost.search.evacuation import LossOutcome
from roost.search.resilience import LostRoot
from roost.search.rows import AllocationRows
from roost.search.vocabulary import Vocabulary
from roost.store.forest.reading import read_allocations


def list_all_allocations(connection: Connection) -> AllocationRows:
    """What all consumers hold, at one moment."""
    return read_allocations(connection)


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
            return f"does not fit elsewhere: too few other roots have room for {wanted} at once"
        case LossOutcome.NO_ARRANGEMENT:
            return "does not fit elsewhere: each consumer has a place, but not all of them at once"
        case _:
            return "may not fit elsewhere: the search found no arrangement before it had to end"
