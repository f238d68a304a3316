"""What tests of drivers and schedulers need: a placement server in this process, and checks.

`docs/test-your-driver.md` shows how to use it. The server is Roost itself, so tests need the
packages of the server. The driver and its host do not.
"""

try:
    from roost.testing.fake_placement import FakePlacement, on_loopback
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] == "roost":
        raise
    raise ImportError(
        f"`roost.testing` runs the server, and {error.name} is not installed. Install the server "
        "where tests run, with: pip install 'roost[server]'"
    ) from error
from roost.testing.checks import (
    assert_moves_allocations,
    assert_settles,
    assert_survives_conflicts,
    assert_survives_lost_answers,
    report_once,
)
from roost.testing.drawings import drawing
from roost.testing.faults import Faults, error_answer, json_answer

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
