"""Scenarios: writes that make and change a cloud, with requests in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from support.properties import first_seed
from support.scenarios.cloud import Cloud, Write
from support.scenarios.oracle import SHARING, Inventory, Provider, World
from support.scenarios.random_clouds import (
    AGGREGATES,
    CLASSES,
    CONSUMERS,
    PROVIDERS,
    TRAITS,
    Draw,
    choose,
    foundings,
    happens,
    some,
)
from support.scenarios.random_clouds import writes as random_writes
from support.scenarios.random_requests import requests
from support.scenarios.requests import Request
from support.worlds.notation import aggregate_uuid, provider_uuid, short_name

Step: TypeAlias = Write | Request
# After ten examples, Hypothesis mostly varies earlier ones. New seeds show more.
SCENARIOS_PER_SEED = 10

_NAMES = {
    **{uuid: f"P{number}" for number, uuid in enumerate(PROVIDERS)},
    **{uuid: f"C{number}" for number, uuid in enumerate(CONSUMERS)},
    **dict(zip(AGGREGATES, "ABC", strict=True)),
    provider_uuid("missing"): "missing",
    aggregate_uuid("Z"): "Z",
}


@dataclass(frozen=True)
class Scenario:
    """Writes and requests in order."""

    steps: tuple[Step, ...]
    # Whether a client asks before the first write.
    early: bool

    def __repr__(self) -> str:
        return readable("\n".join(["a scenario:", *map(str, self.steps)]))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """The form in which Hypothesis prints a scenario."""
        printer.text(repr(self))


@st.composite
def scenarios(draw: Draw, asked: int) -> Scenario:
    """A cloud, then rounds of writes and of at most `asked` requests each."""
    made = draw(foundings())
    steps: list[Step] = [*made]
    cloud = Cloud()
    for write in made:
        cloud = write.apply(cloud)
    for number in range(choose(draw, [1, 4, 4])):
        if number:
            for _ in range(choose(draw, [1, 2, 3])):
                made = draw(random_writes(cloud))
                steps += made
                for write in made:
                    cloud = write.apply(cloud)
        # An earlier request may have another answer after the writes.
        asked_before = [step for step in steps if isinstance(step, Request)]
        steps += some(draw, asked_before[-3:], 25)
        steps += [draw(requests(cloud)) for _ in range(choose(draw, [1, asked, asked]))]
    return Scenario(tuple(steps), early=happens(draw, 40))


def play_scenarios(
    number: int,
    play: Callable[[Scenario], None],
    asked: int = 5,
    count: int = SCENARIOS_PER_SEED,
) -> None:
    """Play the first scenarios of one seed, which are always the same.

    If a scenario fails, Hypothesis shortens it, plays the shortest one last and raises its error.
    """

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(scenario=scenarios(asked))
    def play_each(scenario: Scenario) -> None:
        play(scenario)

    play_each()


def tell(count: int, play: Callable[[Scenario], None]) -> None:
    """Play this number of scenarios: always the same every day, new ones in a long run.

    A failure says how to play its scenario again.
    """
    first = first_seed()
    for number in range(first, first + max(1, count // SCENARIOS_PER_SEED)):
        try:
            play_scenarios(number, play, count=min(count, SCENARIOS_PER_SEED))
        except Exception as error:
            error.add_note(f"`pytest --hypothesis-seed={number}` plays this scenario first.")
            raise


def readable(text: str) -> str:
    """The text with names instead of uuids."""
    for uuid, name in _NAMES.items():
        text = text.replace(uuid, name)
    return text


def drawing(world: World) -> str:
    """A world in the notation of the tests."""
    return readable(", ".join(_providers(world)))


def _providers(world: World) -> Iterator[str]:
    # Parents first: the service creates them in this order.
    for uuid in sorted(world.providers, key=lambda uuid: len(world.lineage(uuid))):
        provider = world.providers[uuid]
        parent = f"<{provider.parent}" if provider.parent else ""
        star = "*" if provider.sharing else ""
        yield f"{star}{uuid}{parent}({', '.join(_belongings(provider))})"


def _belongings(provider: Provider) -> Iterator[str]:
    for name, inventory in provider.inventories.items():
        yield f"{short_name(name)} {_inventory(inventory, provider.used.get(name, 0))}"
    if provider.aggregates:
        yield f"agg {' '.join(sorted(provider.aggregates, key=readable))}"
    yield from sorted(short_name(name) for name in provider.traits - {SHARING})


def _inventory(inventory: Inventory, used: int) -> str:
    usual = Inventory(inventory.total)
    words = {
        "reserved": "reserved",
        "ratio": "allocation_ratio",
        "min": "min_unit",
        "max": "max_unit",
        "step": "step_size",
    }
    said = [
        f"{word} {getattr(inventory, name)}"
        for word, name in words.items()
        if getattr(inventory, name) != getattr(usual, name)
    ]
    return " ".join([str(inventory.total), *said, *([f"used {used}"] if used else [])])


def query_text(request: Request) -> str:
    """A request in the notation of the tests."""
    text = "&".join(f"{name}={value}" for name, value in request.parameters)
    for uuid, name in _NAMES.items():
        brackets = "{%s}" if name in "ABCZ" else "<%s>"
        text = text.replace(uuid, brackets % name)
    for name in (*CLASSES, *TRAITS):
        text = text.replace(name, short_name(name))
    return f"{text} at {request.version}"
