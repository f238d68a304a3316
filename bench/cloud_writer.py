"""Writes providers and consumers straight into the tables, many rows at a time."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import os_resource_classes
import psycopg
import pymysql

BATCH = 50_000
CREATED_AT = "2026-01-01 00:00:00.000000"
FIRST_CUSTOM_CLASS_ID = 10_000
UNLIMITED = 2**31 - 1

COLUMNS = {
    "resource_classes": ("id", "name"),
    "traits": ("id", "name"),
    "placement_aggregates": ("id", "uuid"),
    "projects": ("id", "external_id"),
    "users": ("id", "external_id"),
    "consumer_types": ("id", "name"),
    "resource_providers": (
        *("id", "uuid", "name", "generation"),
        *("root_provider_id", "parent_provider_id"),
    ),
    "inventories": (
        *("resource_provider_id", "resource_class_id", "total", "reserved"),
        *("min_unit", "max_unit", "step_size", "allocation_ratio"),
    ),
    "resource_provider_traits": ("trait_id", "resource_provider_id"),
    "resource_provider_aggregates": ("resource_provider_id", "aggregate_id"),
    "consumers": ("id", "uuid", "project_id", "user_id", "generation", "consumer_type_id"),
    "allocations": ("resource_provider_id", "consumer_id", "resource_class_id", "used"),
}
# Tables with ids to which a service adds rows.
NUMBERED = ("traits", "projects", "users", "consumer_types", "consumers")

Rows = list[tuple[Any, ...]]
InsertRows = Callable[[str, Rows], None]


class CloudWriter:
    """Collects rows and inserts them in batches. The same seed gives the same ids and uuids."""

    def __init__(self, insert: InsertRows, seed: int = 2026) -> None:
        self.random = random.Random(seed)
        self.provider_count = 0
        self.uuids: list[str] = []
        self._insert = insert
        self._rows: dict[str, Rows] = {table: [] for table in COLUMNS}
        self._pending = 0
        self._roots: list[int] = []
        self._class_ids: dict[str, int] = {}
        self._trait_ids: dict[str, int] = {}
        self._aggregate_ids: dict[str, int] = {}
        self._consumer_count = 0
        for id_, name in enumerate(os_resource_classes.STANDARDS):
            self._class_ids[name] = self._add("resource_classes", id_, name)
        self._add("projects", 1, "project")
        self._add("users", 1, "user")
        self._add("consumer_types", 1, "INSTANCE")

    def __enter__(self) -> CloudWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()

    def uuid(self) -> str:
        """The next random uuid."""
        digits = f"{self.random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def aggregate(self) -> str:
        """Add an aggregate and return its uuid."""
        uuid = self.uuid()
        number = len(self._aggregate_ids) + 1
        self._aggregate_ids[uuid] = self._add("placement_aggregates", number, uuid)
        return uuid

    def provider(
        self,
        inventories: Mapping[str, int],
        parent: int | None = None,
        traits: Sequence[str] = (),
        aggregates: Sequence[str] = (),
        ratio: float = 1.0,
    ) -> int:
        """Add a provider with these totals by resource class, and return its number."""
        number = self.provider_count = self.provider_count + 1
        root = number if parent is None else self._roots[parent - 1]
        uuid = self.uuid()
        self.uuids.append(uuid)
        self._roots.append(root)
        self._add("resource_providers", number, uuid, f"provider-{number}", 1, root, parent)
        for name, total in inventories.items():
            class_id = self._class_id(name)
            self._add("inventories", number, class_id, total, 0, 1, UNLIMITED, 1, ratio)
        for name in traits:
            self._add("resource_provider_traits", self._trait_id(name), number)
        for aggregate in aggregates:
            self._add("resource_provider_aggregates", number, self._aggregate_ids[aggregate])
        return number

    def consumer(self, holdings: Sequence[tuple[int, str, int]]) -> None:
        """Add a consumer. A holding is a provider, a resource class and an amount."""
        number = self._consumer_count = self._consumer_count + 1
        uuid = self.uuid()
        self._add("consumers", number, uuid, 1, 1, 1, 1)
        for provider, name, used in holdings:
            self._add("allocations", provider, uuid, self._class_ids[name], used)

    def uuid_of(self, provider: int) -> str:
        """The uuid of a provider."""
        return self.uuids[provider - 1]

    def flush(self) -> None:
        """Insert all rows that were collected."""
        for table, rows in self._rows.items():
            if rows:
                self._insert(table, rows)
                rows.clear()
        self._pending = 0

    def _add(self, table: str, *values: Any) -> int:
        """Collect a row and return the first of its values."""
        self._rows[table].append(values)
        self._pending += 1
        if self._pending >= BATCH:
            self.flush()
        return int(values[0])

    def _class_id(self, name: str) -> int:
        if name not in self._class_ids:
            number = FIRST_CUSTOM_CLASS_ID + len(self._class_ids)
            self._class_ids[name] = self._add("resource_classes", number, name)
        return self._class_ids[name]

    def _trait_id(self, name: str) -> int:
        if name not in self._trait_ids:
            number = len(self._trait_ids) + 1
            self._trait_ids[name] = self._add("traits", number, name)
        return self._trait_ids[name]


def sqlite_inserter(connection: sqlite3.Connection) -> InsertRows:
    """Insert through an SQLite connection."""
    connection.execute("PRAGMA synchronous=OFF")
    # 256 MB, because random uuids touch pages all over their indexes.
    connection.execute("PRAGMA cache_size=-262144")

    def insert(table: str, rows: Rows) -> None:
        connection.executemany(_statement(table, "?"), rows)

    return insert


def postgresql_inserter(connection: psycopg.Connection[Any]) -> InsertRows:
    """Insert through a PostgreSQL connection."""

    def insert(table: str, rows: Rows) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(_statement(table, "%s").encode(), rows)
            if table in NUMBERED:
                # The ids of the service follow the ids of these rows.
                following = max(row[0] for row in rows)
                cursor.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", (table, following)
                )

    return insert


def mariadb_inserter(connection: pymysql.connections.Connection[Any]) -> InsertRows:
    """Insert through a MariaDB connection, which continues the ids of these rows by itself."""

    def insert(table: str, rows: Rows) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(_statement(table, "%s"), rows)

    return insert


def _statement(table: str, placeholder: str) -> str:
    columns = COLUMNS[table]
    values = ", ".join([placeholder] * len(columns))
    return (
        f"INSERT INTO {table} (created_at, {', '.join(columns)}) VALUES ('{CREATED_AT}', {values})"
    )
