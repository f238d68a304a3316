"""The triggers of PostgreSQL.

A pooler between Roost and the server hands the name of the application on. It may lose a variable
of the session, or give the variable to the session of another program.
"""

from __future__ import annotations

from collections.abc import Iterator

from roost.store.tables import roost_changes
from roost.store.triggers.watching import PREFIX, WATCHED, TableEvent, WatchedTable

# Roost connects under this name. Another name costs a second row for each change of Roost.
APPLICATION_NAME = "roost"
_IS_ANOTHER = f"pg_catalog.current_setting('application_name') <> '{APPLICATION_NAME}'"

INSTALLED = (
    "SELECT tgrelid::regclass::text, tgname FROM pg_catalog.pg_trigger"
    f" WHERE tgname LIKE '{PREFIX}%' AND tgenabled <> 'D'"
    " AND pg_catalog.pg_table_is_visible(tgrelid)"
)
# Functions of every version, also those whose triggers are gone.
FUNCTIONS = (
    "SELECT oid::regprocedure::text FROM pg_catalog.pg_proc"
    f" WHERE proname LIKE '{PREFIX}%' AND pg_catalog.pg_function_is_visible(oid) ORDER BY 1"
)
# The schema of the tables need not be the first one of the search path.
SCHEMA = (
    "SELECT coalesce((SELECT relnamespace::regnamespace::text FROM pg_catalog.pg_class"
    f" WHERE oid = pg_catalog.to_regclass('{roost_changes.name}')),"
    " pg_catalog.quote_ident(pg_catalog.current_schema()))"
)


def creations(schema: str) -> Iterator[str]:
    """The statements that create all triggers and their functions; the schema is quoted."""
    for watched in WATCHED:
        yield _function(watched, schema)
        # Triggers fire without this right. A program with it could put the function elsewhere.
        yield f"REVOKE ALL ON FUNCTION {schema}.{watched.function_name}() FROM PUBLIC"
        for event in TableEvent:
            name = watched.trigger_name(event)
            yield f"DROP TRIGGER IF EXISTS {name} ON {schema}.{watched.table.name}"
            yield _trigger(watched, event, schema)


def removal(table: str, name: str) -> str:
    """The statement that drops a trigger."""
    return f"DROP TRIGGER IF EXISTS {name} ON {table}"


def function_removal(signature: str) -> str:
    """The statement that drops a function, with triggers that are switched off or elsewhere."""
    return f"DROP FUNCTION IF EXISTS {signature} CASCADE"


def _function(watched: WatchedTable, schema: str) -> str:
    # The owner of the journal writes to it, whatever program changes the table. The path keeps
    # operators and tables of that program away from the rights of the owner.
    return (
        f"CREATE OR REPLACE FUNCTION {schema}.{watched.function_name}() RETURNS trigger"
        " LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
        f" AS $roost$ BEGIN {_body(watched, schema)} RETURN NULL; END $roost$"
    )


def _body(watched: WatchedTable, schema: str) -> str:
    if watched.provider is None:
        return _insert(watched, "NULL", schema)
    old, new = f"OLD.{watched.provider}", f"NEW.{watched.provider}"
    return (
        f"IF TG_OP = 'DELETE' THEN {_insert(watched, old, schema)}"
        f" ELSE {_insert(watched, new, schema)}"
        f" IF TG_OP = 'UPDATE' THEN IF {old} <> {new} THEN {_insert(watched, old, schema)}"
        " END IF; END IF; END IF;"
    )


def _insert(watched: WatchedTable, provider: str, schema: str) -> str:
    return (
        f"INSERT INTO {schema}.roost_changes (created_at, kind, provider_id) VALUES"
        " (pg_catalog.timezone('utc', pg_catalog.clock_timestamp()),"
        f" '{watched.kind}', {provider});"
    )


def _trigger(watched: WatchedTable, event: TableEvent, schema: str) -> str:
    condition = _IS_ANOTHER
    if event is TableEvent.UPDATE:
        names = watched.columns
        old, new = (", ".join(f"{row}.{name}" for name in names) for row in ("OLD", "NEW"))
        condition += f" AND ({old}) IS DISTINCT FROM ({new})"
    return (
        f"CREATE TRIGGER {watched.trigger_name(event)} AFTER {event.upper()} ON"
        f" {schema}.{watched.table.name} FOR EACH ROW WHEN ({condition})"
        f" EXECUTE PROCEDURE {schema}.{watched.function_name}()"
    )
