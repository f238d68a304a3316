"""The work file of a copy: what was read from a server so far, in a small SQLite file.

It keeps a cloud out of memory, and lets a copy continue after an interruption.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from roost.client.reading.survey import SurveyedConsumer, SurveyedProvider, SurveyFailed

_SCHEMA = """
CREATE TABLE IF NOT EXISTS providers (uuid TEXT PRIMARY KEY, generation INTEGER, body BLOB);
CREATE TABLE IF NOT EXISTS servers (url TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS consumers (uuid TEXT PRIMARY KEY, project TEXT, body BLOB);
"""


class SurveyFile:
    """Providers and consumers that were read. For one thread."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path)
        # A copy that is lost with the machine begins again.
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._connection.commit()
        self._connection.close()

    def commit(self) -> None:
        """Keep what was put so far, whatever comes."""
        self._connection.commit()

    def require_server(self, url: str) -> None:
        """Record the server that is read; refuse a file with what another server has."""
        found = self._connection.execute("SELECT url FROM servers").fetchone()
        if found is None:
            self._connection.execute("INSERT INTO servers VALUES (?)", (url,))
            self._connection.commit()
        elif found != (url,):
            raise SurveyFailed(
                f"The work directory has what was read from {found[0]}, and the server is {url} "
                "now. Remove the directory, or name another with --work-dir."
            )

    def generations(self) -> dict[str, int]:
        """The generation at which each provider was read."""
        return dict(self._connection.execute("SELECT uuid, generation FROM providers"))

    def put_provider(self, uuid: str, provider: SurveyedProvider) -> None:
        """Keep a provider, in place of what was known of it."""
        self._connection.execute(
            "INSERT OR REPLACE INTO providers VALUES (?, ?, ?)",
            (uuid, provider.generation, orjson.dumps(asdict(provider))),
        )

    def forget_providers(self, uuids: Iterable[str]) -> None:
        """Providers are to be read again, or do not exist."""
        self._connection.executemany(
            "DELETE FROM providers WHERE uuid = ?", [(uuid,) for uuid in uuids]
        )

    def provider(self, uuid: str) -> SurveyedProvider:
        """A provider that was read."""
        query = "SELECT body FROM providers WHERE uuid = ?"
        (body,) = self._connection.execute(query, (uuid,)).fetchone()
        return SurveyedProvider(**orjson.loads(body))

    def put_consumer(self, uuid: str, consumer: SurveyedConsumer) -> None:
        """Keep a consumer, in place of what was known of it."""
        self._connection.execute(
            "INSERT OR REPLACE INTO consumers VALUES (?, ?, ?)",
            (uuid, consumer.project, orjson.dumps(asdict(consumer))),
        )

    def forget_consumers(self, uuids: Iterable[str]) -> None:
        """Consumers are to be read again, or have no allocations."""
        self._connection.executemany(
            "DELETE FROM consumers WHERE uuid = ?", [(uuid,) for uuid in uuids]
        )

    def consumer_uuids(self) -> set[str]:
        """The consumers that were read."""
        return {uuid for (uuid,) in self._connection.execute("SELECT uuid FROM consumers")}

    def consumers(self) -> Iterator[tuple[str, SurveyedConsumer]]:
        """All consumers, in the order of their uuids."""
        rows = self._connection.execute("SELECT uuid, body FROM consumers ORDER BY uuid")
        for uuid, body in rows:
            yield uuid, SurveyedConsumer(**orjson.loads(body))
