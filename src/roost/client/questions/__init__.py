"""Questions to a server: candidates, which every server answers, and those under `/roost/`."""

from roost.client.questions.questions import Json, Questions, asks_of, demand_answered, ordered

__all__ = ["Json", "Questions", "asks_of", "demand_answered", "ordered"]
