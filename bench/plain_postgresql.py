"""Claims by plain psycopg: what PostgreSQL itself can do for them.

psycopg's own implementation in C, prepared statements, nothing between it and the database.
"""

from __future__ import annotations

from typing import Any

import psycopg

from connections import connect_postgresql
from plain_claims import (
    PROJECT,
    TYPE,
    USER,
    Claim,
    allocation_rows,
    change_rows,
    check_room,
    now,
    one_row_each,
    read_names,
)

LOOK_UP_NAMES = """
SELECT 'class', id, name FROM resource_classes WHERE name = ANY(%s)
UNION ALL SELECT 'project', id, external_id FROM projects WHERE external_id = %s
UNION ALL SELECT 'user', id, external_id FROM users WHERE external_id = %s
UNION ALL SELECT 'type', id, name FROM consumer_types WHERE name = %s
"""
LOCK_CONSUMER = """
SELECT id, uuid, generation, project_id, user_id, consumer_type_id FROM consumers
WHERE uuid = %s ORDER BY id FOR UPDATE
"""
INSERT_CONSUMER = """
INSERT INTO consumers
(created_at, updated_at, uuid, generation, project_id, user_id, consumer_type_id)
VALUES (%s, %s, %s, 1, %s, %s, %s)
"""
LOCK_PROVIDERS = """
SELECT id, uuid, generation FROM resource_providers WHERE uuid = ANY(%s) ORDER BY id FOR UPDATE
"""
_USAGES = """
SELECT i.resource_provider_id, i.resource_class_id, c.name, i.total, i.reserved, i.min_unit,
i.max_unit, i.step_size, i.allocation_ratio,
(SELECT coalesce(sum(a.used), 0) FROM allocations a
WHERE a.resource_provider_id = i.resource_provider_id
AND a.resource_class_id = i.resource_class_id)
FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
"""
READ_USAGES = _USAGES + "WHERE i.resource_provider_id = ANY(%s) AND i.resource_class_id = ANY(%s)"
# The batch that locks the providers does not know their ids yet.
READ_USAGES_BY_NAME = (
    _USAGES
    + """JOIN resource_providers p ON p.id = i.resource_provider_id
WHERE p.uuid = ANY(%s) AND c.name = ANY(%s)"""
)
INSERT_ALLOCATIONS = (
    "INSERT INTO allocations"
    " (created_at, resource_provider_id, consumer_id, resource_class_id, used)"
    " VALUES (%s, %s, %s, %s, %s)"
)
INCREMENT_GENERATIONS = (
    "UPDATE resource_providers SET generation = generation + 1, updated_at = %s WHERE id = ANY(%s)"
)
INSERT_CHANGES = (
    "INSERT INTO roost_changes (created_at, kind, provider_id, provider_uuid)"
    " VALUES (%s, 'usage', %s, %s)"
)


class StatementByStatement:
    """A claim as a transaction of eight statements, each of which is a round trip."""

    def __init__(self, url: str) -> None:
        self._connection = connect_postgresql(url)
        self._cursor = self._connection.cursor()

    def claim(self, claim: Claim) -> int:
        """Make a claim. The result is the number of repetitions, which is 0."""
        run, time = self._run, now()
        names = read_names(run(LOOK_UP_NAMES, (claim.classes, PROJECT, USER, TYPE)).fetchall())
        assert not run(LOCK_CONSUMER, (claim.consumer,)).fetchall()
        run(INSERT_CONSUMER, (time, time, claim.consumer, *names.owner))
        locked = {row[1]: row[0] for row in run(LOCK_PROVIDERS, (claim.providers,)).fetchall()}
        ids = sorted(locked.values())
        usages = run(READ_USAGES, (ids, list(names.classes.values()))).fetchall()
        check_room(claim, names, locked, usages)
        run(*one_row_each(INSERT_ALLOCATIONS, allocation_rows(claim, names, locked, time)))
        run(INCREMENT_GENERATIONS, (time, ids))
        run(*one_row_each(INSERT_CHANGES, change_rows(locked, time)))
        self._connection.commit()
        return 0

    def _run(self, statement: str, parameters: Any) -> psycopg.Cursor[Any]:
        return self._cursor.execute(statement.encode(), parameters, prepare=True)


class Batched:
    """A claim in two round trips, by pipeline mode: all that is read, then all that is written."""

    def __init__(self, url: str) -> None:
        # Without autocommit, psycopg would send BEGIN by itself.
        self._connection = connect_postgresql(url, autocommit=True)

    def claim(self, claim: Claim) -> int:
        """Make a claim. The result is the number of repetitions, which is 0."""
        run, time = self._run, now()
        with self._connection.pipeline():
            run("BEGIN", ())
            names_found = run(LOOK_UP_NAMES, (claim.classes, PROJECT, USER, TYPE))
            consumer_found = run(LOCK_CONSUMER, (claim.consumer,))
            providers_found = run(LOCK_PROVIDERS, (claim.providers,))
            usages_found = run(READ_USAGES_BY_NAME, (claim.providers, claim.classes))
        assert not consumer_found.fetchall()
        names = read_names(names_found.fetchall())
        locked = {row[1]: row[0] for row in providers_found.fetchall()}
        check_room(claim, names, locked, usages_found.fetchall())
        with self._connection.pipeline():
            run(INSERT_CONSUMER, (time, time, claim.consumer, *names.owner))
            run(*one_row_each(INSERT_ALLOCATIONS, allocation_rows(claim, names, locked, time)))
            run(INCREMENT_GENERATIONS, (time, sorted(locked.values())))
            run(*one_row_each(INSERT_CHANGES, change_rows(locked, time)))
            run("COMMIT", ())
        return 0

    def _run(self, statement: str, parameters: Any) -> psycopg.Cursor[Any]:
        # Each statement has a cursor of its own, because its rows come later.
        return self._connection.cursor().execute(statement.encode(), parameters, prepare=True)
