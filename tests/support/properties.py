"""The number of examples that Hypothesis tries.

The everyday run tries few examples, and always the same ones. The long run tries many new ones:
`--hypothesis-profile=long` chooses it. A property that fails prints how to repeat the failure: by
`@reproduce_failure`, or by `--hypothesis-seed`.
"""

from __future__ import annotations

import secrets

import pytest
from hypothesis import core, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

EVERYDAY = "everyday"
LONG = "long"
# The long run tries so many times the examples of the everyday run.
LONG_FACTOR = 10
# The number of examples for a property that names none, in an everyday run.
EXAMPLES = 50


def register_profiles() -> None:
    """Make both profiles known. The everyday one holds unless the command line names another."""
    for name in (LONG, EVERYDAY):
        settings.register_profile(
            name,
            max_examples=EXAMPLES * (LONG_FACTOR if name == LONG else 1),
            derandomize=name == EVERYDAY,
            database=None,
            deadline=None,
            print_blob=True,
        )
    settings.load_profile(EVERYDAY)


def is_long_run() -> bool:
    """Whether this run tries many new examples."""
    return settings.get_current_profile_name() == LONG


def many(everyday: int) -> int:
    """The number of examples in this run for a property that has `everyday` in an everyday run."""
    return everyday * LONG_FACTOR if is_long_run() else everyday


def first_seed() -> int:
    """The first seed for a property that seeds Hypothesis by itself."""
    given = core.global_force_seed
    if given is not None:
        return int(given)
    return secrets.randbelow(2**32) if is_long_run() else 0


def draw_the_same_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Hypothesis draw the same examples in each everyday run.

    Hypothesis draws constants of the modules that a process has imported. So a test that runs
    alone would have other examples than the same test after others.
    """
    monkeypatch.setattr(providers, "_get_local_constants", Constants)
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", type(providers.CONSTANTS_CACHE)(1024))
