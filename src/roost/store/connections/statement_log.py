"""The log of statements (`connection_debug`), also of those that the driver executes by itself.

SQLAlchemy logs its own statements to the logger of its engine. These functions add the rest,
without values: clients may have sent secrets.
"""

from __future__ import annotations

import logging

from sqlalchemy import Connection, Engine


def log_statements(connection: Connection, *texts: str) -> None:
    """Log statements that the driver is about to execute, if the operator wants that."""
    # SQLAlchemy asks this attribute before each statement of its own. It costs nothing beside the
    # shortest read; to ask the logger would cost twice as much.
    if connection._echo:
        log_for_engine(connection.engine, *texts)


def log_for_engine(engine: Engine, *texts: str) -> None:
    """Log statements of a new connection, which SQLAlchemy does not have yet."""
    if engine.logger.isEnabledFor(logging.INFO):
        for text in texts:
            engine.logger.info("%s", text)
