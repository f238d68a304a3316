"""Each start inserts missing standard resource classes and traits, with their fixed ids."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import os_resource_classes
import os_traits
from sqlalchemy import Connection, delete, select

from roost.store.database import Database, DatabaseOptions
from roost.store.migrations.schema import prepare_schema
from roost.store.rows.vocabulary import sync_standard_names
from roost.store.tables import resource_classes, traits


def class_ids(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(resource_classes.c.name, resource_classes.c.id))
    return {row.name: row.id for row in rows}


def trait_names(connection: Connection) -> set[str]:
    return set(connection.execute(select(traits.c.name)).scalars())


def forget_the_newest(connection: Connection) -> None:
    """Delete names, as if the service so far had an older library."""
    connection.execute(delete(resource_classes).where(resource_classes.c.id >= 18))
    connection.execute(delete(resource_classes).where(resource_classes.c.name == "VCPU"))
    connection.execute(delete(traits).where(traits.c.name.startswith("HW_CPU")))


def test_the_id_of_a_class_is_its_position_in_the_library(database: Database) -> None:
    standard = {name: id_ for id_, name in enumerate(os_resource_classes.STANDARDS)}
    assert database.read(class_ids) == standard
    assert standard["VCPU"] == 0
    assert database.read(trait_names) == set(os_traits.get_traits())


def test_new_names_of_a_library_are_inserted_at_the_next_start(database_url: str) -> None:
    database = Database(DatabaseOptions(url=database_url))
    prepare_schema(database, upgrade=False)
    database.write(sync_standard_names)
    classes, names = database.read(class_ids), database.read(trait_names)
    database.write_at_once(forget_the_newest)
    assert database.write(sync_standard_names) > 0
    assert database.read(class_ids) == classes
    assert database.read(trait_names) == names
    assert database.write(sync_standard_names) == 0
    database.close()


def test_several_services_may_start_at_once(database_url: str) -> None:
    services = [Database(DatabaseOptions(url=database_url)) for _ in range(6)]

    def start(database: Database) -> None:
        prepare_schema(database, upgrade=False)
        database.write(sync_standard_names)

    with ThreadPoolExecutor(len(services)) as pool:
        list(pool.map(start, services))
    assert len(services[0].read(trait_names)) == len(set(os_traits.get_traits()))
    assert len(services[0].read(class_ids)) == len(os_resource_classes.STANDARDS)
    for database in services:
        database.close()
