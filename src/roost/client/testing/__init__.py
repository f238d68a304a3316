"""What tests of drivers and schedulers need: a placement server in memory, and checks.

`docs/test-your-driver.md` shows how to use it. Nothing here needs the packages of the server.
"""

from roost.client.testing.checks import (
    assert_moves_allocations,
    assert_settles,
    assert_survives_conflicts,
    assert_survives_lost_answers,
    report_once,
)
from roost.client.testing.drawings import drawing
from roost.client.testing.fake_placement import FakePlacement, on_loopback
from roost.client.testing.faults import Faults, error_answer, json_answer

__all__ = [
    "FakePlacement",
    "Faults",
    "assert_moves_allocations",
    "assert_settles",
    "assert_survives_conflicts",
    "assert_survives_lost_answers",
    "drawing",
    "error_answer",
    "json_answer",
    "on_loopback",
    "report_once",
]
