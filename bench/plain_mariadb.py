"""Claims by plain PyMySQL: what MariaDB itself can do for them.

PyMySQL is the driver that services of OpenStack use. It is pure Python, so a client costs more CPU
than psycopg's, and clients need processes of their own even more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
from pymysql.constants import ER

from connections import connect_mariadb
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

ATTEMPTS = 10

LOOK_UP_NAMES = """
SELECT 'class', id, name FROM resource_classes WHERE name IN %s
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
SELECT id, uuid, generation FROM resource_providers WHERE uuid IN %s ORDER BY id FOR UPDATE
"""
_USAGES = """
SELECT i.resource_provider_id, i.resource_class_id, c.name, i.total, i.reserved, i.min_unit,
i.max_unit, i.step_size, i.allocation_ratio,
(SELECT coalesce(sum(a.used), 0) FROM allocations a
WHERE a.resource_provider_id = i.resource_provider_id
AND a.resource_class_id = i.resource_class_id)
FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
"""
READ_USAGES = _USAGES + "WHERE i.resource_provider_id IN %s AND i.resource_class_id IN %s"
# The batch that locks the providers does not know their ids yet.
READ_USAGES_BY_NAME = (
    _USAGES
    + """JOIN resource_providers p ON p.id = i.resource_provider_id
WHERE p.uuid IN %s AND c.name IN %s"""
)
INSERT_ALLOCATIONS = (
    "INSERT INTO allocations"
    " (created_at, resource_provider_id, consumer_id, resource_class_id, used)"
    " VALUES (%s, %s, %s, %s, %s)"
)
INCREMENT_GENERATIONS = (
    "UPDATE resource_providers SET generation = generation + 1, updated_at = %s WHERE id IN %s"
)
INSERT_CHANGES = (
    "INSERT INTO roost_changes (created_at, kind, provider_id, provider_uuid)"
    " VALUES (%s, 'usage', %s, %s)"
)


class StatementByStatement:
    """A claim as a transaction of eight statements, each of which is a round trip."""

    def __init__(self, url: str) -> None:
        self._connection = connect_mariadb(url)
        self._cursor = self._connection.cursor()

    def claim(self, claim: Claim) -> int:
        """Make a claim and return the number of repetitions."""
        return _until_it_works(self._connection, lambda: self._claim(claim))

    def _claim(self, claim: Claim) -> None:
        run, time = self._run, now()
        names = read_names(run(LOOK_UP_NAMES, (claim.classes, PROJECT, USER, TYPE)))
        assert not run(LOCK_CONSUMER, (claim.consumer,))
        run(INSERT_CONSUMER, (time, time, claim.consumer, *names.owner))
        locked = {row[1]: row[0] for row in run(LOCK_PROVIDERS, (claim.providers,))}
        ids = sorted(locked.values())
        usages = run(READ_USAGES, (ids, list(names.classes.values())))
        check_room(claim, names, locked, usages)
        run(*one_row_each(INSERT_ALLOCATIONS, allocation_rows(claim, names, locked, time)))
        run(INCREMENT_GENERATIONS, (time, ids))
        run(*one_row_each(INSERT_CHANGES, change_rows(locked, time)))
        self._connection.commit()

    def _run(self, statement: str, parameters: Any) -> Any:
        self._cursor.execute(statement, parameters)
        return self._cursor.fetchall()


class Batched:
    """A claim in two round trips of several statements: all that is read, all that is written."""

    def __init__(self, url: str) -> None:
        self._connection = connect_mariadb(url)
        self._cursor = self._connection.cursor()

    def claim(self, claim: Claim) -> int:
        """Make a claim and return the number of repetitions."""
        return _until_it_works(self._connection, lambda: self._claim(claim))

    def _claim(self, claim: Claim) -> None:
        names_found, consumers_found, providers_found, usages_found = self._run(
            (LOOK_UP_NAMES, (claim.classes, PROJECT, USER, TYPE)),
            (LOCK_CONSUMER, (claim.consumer,)),
            (LOCK_PROVIDERS, (claim.providers,)),
            (READ_USAGES_BY_NAME, (claim.providers, claim.classes)),
        )
        assert not consumers_found
        names, time = read_names(names_found), now()
        locked = {row[1]: row[0] for row in providers_found}
        check_room(claim, names, locked, usages_found)
        self._run(
            (INSERT_CONSUMER, (time, time, claim.consumer, *names.owner)),
            one_row_each(INSERT_ALLOCATIONS, allocation_rows(claim, names, locked, time)),
            (INCREMENT_GENERATIONS, (time, sorted(locked.values()))),
            one_row_each(INSERT_CHANGES, change_rows(locked, time)),
            ("COMMIT", ()),
        )

    def _run(self, *statements: tuple[str, Any]) -> list[Any]:
        """Send all statements at once, and return the rows of each."""
        self._cursor.execute("; ".join(self._cursor.mogrify(*each) for each in statements))
        found = [self._cursor.fetchall()]
        while self._cursor.nextset():
            found.append(self._cursor.fetchall())
        return found


def _until_it_works(
    connection: pymysql.connections.Connection[Any], work: Callable[[], None]
) -> int:
    """Repeat a transaction that lost a deadlock, and return how often that was necessary."""
    for attempt in range(ATTEMPTS):
        try:
            work()
            return attempt
        except pymysql.err.OperationalError as error:
            connection.rollback()
            if error.args[0] != ER.LOCK_DEADLOCK or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")
