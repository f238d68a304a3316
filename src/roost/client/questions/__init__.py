"""Questions to a server: candidates, which every server answers, and those under `/roost/`."""

from roost.client.questions.questions import Json, Questions, demand_answered

__all__ = ["Json", "Questions", "demand_answered"]
