"""Fixtures of the tests of questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from support.stubs.question_stub import QuestionStub, Serving


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """Starts a server with these answers by path, which commands talk to."""
    with ExitStack() as stack:

        def serve(answers: dict[str, Any], **options: Any) -> QuestionStub:
            stub = stack.enter_context(QuestionStub(answers, **options))
            monkeypatch.setenv("ROOST_URL", stub.url)
            return stub

        yield serve
