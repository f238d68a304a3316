"""The choice of a database, by the scheme of a URL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from roost.store.database import Database
from roost.store.dialect import SCHEMES, dialect_named, dialect_of


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_database_knows_whatever_the_interface_leaves_to_it(scheme: str) -> None:
    dialect = dialect_named(scheme)
    assert dialect.drivers
    assert dialect.begin_snapshot
    assert dialect.position
    assert dialect.old_rows
    assert dialect.installed_triggers
    # A file has no life of its own, and a server has no file.
    assert dialect.is_file is not bool(dialect.server_life)


def test_a_connection_has_the_dialect_of_its_url(database: Database) -> None:
    assert dialect_of(database.engine) is database.dialect
    assert database.read(dialect_of) is database.dialect


def test_a_process_loads_the_code_of_its_own_database_only(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from roost.store.database import Database, DatabaseOptions\n"
        "database = Database(DatabaseOptions(url=sys.argv[1]))\n"
        "database.read(lambda connection: connection.exec_driver_sql('SELECT 1').scalar())\n"
        "database.close()\n"
        "print(*sorted(name for name in sys.modules if name.count('.') == 3\n"
        "              and name.startswith('roost.store.databases.')))\n"
    )
    url = f"sqlite:///{tmp_path / 'x.db'}"
    command = [sys.executable, "-c", program, url]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told.split() == ["roost.store.databases.sqlite"]
