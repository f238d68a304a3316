"""A rebuild: a forest that is made anew, from all providers."""

from __future__ import annotations

import logging
import time

from sqlalchemy import Connection

from roost.search.forest.forest import Forest
from roost.search.forest.vocabulary import Vocabulary
from roost.store.connections.errors import ConnectionLost
from roost.store.forest.reading import ForestReading, read_vocabulary
from roost.store.journal.following import Following
from roost.store.journal.position import Position, start_position

_LOG = logging.getLogger(__name__)

# After so long, the log says how far a rebuild is.
LONG_SECONDS = 5.0
# How many connections in a row may be lost without anything new. Each of the process's connections
# may have been lost before the rebuild begins.
_LOSSES_MAX = 3


class Rebuild:
    """A forest in the making. What it has read stays when a connection is lost.

    The database needs most of the time, so connections may be cut faster than all is read. The rest
    is then read over further connections, in later snapshots.
    """

    def __init__(self) -> None:
        self._reading = ForestReading()
        self._position: Position | None = None
        self._vocabulary: Vocabulary | None = None
        self._forest: Forest | None = None
        # In how many snapshots the rebuild has read, and in how many looks.
        self._moments = 0
        self._looks = 0
        # The time that the rebuild took so far, without pauses between two looks.
        self.seconds = 0.0
        self._went_on = 0.0
        self._has_told = False

    @property
    def is_complete(self) -> bool:
        """Whether the forest has all that was committed before the last call of `finish`.

        If not, the journal since its position completes it.
        """
        return self._moments == 1 and self._looks == 1

    def finish(self, following: Following) -> tuple[Forest, Position]:
        """Read all that is left, and build the forest; also the position from which to read on."""
        self._looks += 1
        self._went_on = time.monotonic()
        try:
            self._read(following)
            return self._built()
        finally:
            self.seconds += time.monotonic() - self._went_on

    def _read(self, following: Following) -> None:
        losses = 0
        while self._vocabulary is None:
            before = self._progress
            try:
                if self._position is None:
                    following.begin(self._begin)
                else:
                    following.snapshot(self._read_on)
            except ConnectionLost as error:
                losses = 1 if self._progress > before else losses + 1
                if losses >= _LOSSES_MAX:
                    raise
                _LOG.info("Reading all providers goes on over another connection: %s", error)

    @property
    def _progress(self) -> int:
        return (self._position is not None) + self._reading.pieces_read

    def _begin(self, connection: Connection) -> None:
        self._position = start_position(connection)
        self._read_on(connection)

    def _read_on(self, connection: Connection) -> None:
        self._moments += 1
        self._reading.read_on(connection, self._tell)
        # Last, so that it has the names of all that was read.
        self._vocabulary = read_vocabulary(connection)

    def _tell(self) -> None:
        """Say once how far a long rebuild is."""
        seconds = self.seconds + time.monotonic() - self._went_on
        if seconds < LONG_SECONDS or self._has_told:
            return
        self._has_told = True
        _LOG.warning(
            "Reading all providers takes long: %d of %d pieces in %.0f seconds. Requests for "
            "candidates wait for it.",
            self._reading.pieces_read,
            self._reading.pieces,
            seconds,
        )

    def _built(self) -> tuple[Forest, Position]:
        assert self._position is not None, "the reading began at a position"
        assert self._vocabulary is not None, "the reading is complete"
        if self._forest is None:
            # Outside all transactions, because it takes seconds for a large cloud.
            self._forest = Forest.of(self._reading.take_rows(), self._vocabulary)
        return self._forest, self._position
