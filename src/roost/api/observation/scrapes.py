"""The text of a scrape, which clients share for a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Any client may ask. So scrapes take a twentieth of a CPU at most, whatever clients do.
_KEPT_TIMES = 20.0
_KEPT_SECONDS_MAX = 1.0


class SharedScrape:
    """Keeps the last text. For any number of threads."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        # Until when the text is as good as a new one.
        self._good_until = 0.0
        self._text = b""

    def text(self, make: Callable[[], bytes]) -> bytes:
        """The text of now, or of a moment ago."""
        asked = time.monotonic()
        with self._making:
            if asked >= self._good_until:
                began = time.thread_time()
                self._text = make()
                spent = time.thread_time() - began
                kept = min(_KEPT_SECONDS_MAX, _KEPT_TIMES * spent)
                self._good_until = time.monotonic() + kept
            return self._text
