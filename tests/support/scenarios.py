"""Stories: a cloud comes into being, is asked about, changes, and is asked about again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from support.asking import Request
from support.cloud import Cloud, Write
from support.notation import aggregate_uuid, provider_uuid, short_name
from support.oracle import SHARING, Inventory, Provider, World
from support.random_queries import requests
from support.random_worlds import (
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
from support.random_worlds import writes as random_writes

Step: TypeAlias = Write | Request
# After the first ten, Hypothesis likes to vary what it has; stories of their own show more.
STORIES = 10

_NAMES = {
    **{uuid: f"P{number}" for number, uuid in enumerate(PROVIDERS)},
    **{uuid: f"C{number}" for number, uuid in enumerate(CONSUMERS)},
    **dict(zip(AGGREGATES, "ABC", strict=True)),
    provider_uuid("nobody"): "nobody",
    aggregate_uuid("Z"): "Z",
}


@dataclass(frozen=True)
class Scenario:
    """Writes and requests in order."""

    steps: tuple[Step, ...]
    # Whether somebody asks before there is anything.
    early: bool

    def __repr__(self) -> str:
        return readable("\n".join(["a story:", *map(str, self.steps)]))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """How Hypothesis prints it."""
        printer.text(repr(self))


@st.composite
def scenarios(draw: Draw, asked: int) -> Scenario:
    """A cloud, then rounds of writes and of so many requests."""
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
        # The same question again may have another answer now.
        asked_before = [step for step in steps if isinstance(step, Request)]
        steps += some(draw, asked_before[-3:], 25)
        steps += [draw(requests(cloud)) for _ in range(choose(draw, [1, asked, asked]))]
    return Scenario(tuple(steps), early=happens(draw, 40))


def tell_stories(number: int, play: Callable[[Scenario], None], asked: int = 5) -> None:
    """Play the stories of one number, which are always the same.

    If one of them fails, the shortest one like it is played last and its error is raised.
    """

    @seed(number)
    @settings(
        max_examples=STORIES,
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


def readable(text: str) -> str:
    """The text with names instead of uuids."""
    for uuid, name in _NAMES.items():
        text = text.replace(uuid, name)
    return text


def drawing(world: World) -> str:
    """A world in the notation of the tests."""
    return readable(", ".join(_providers(world)))


def _providers(world: World) -> Iterator[str]:
    # Parents first, as they have to be made.
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
