"""Plain connections to a database, by the URL that Roost gets."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql
from pymysql.constants import CLIENT

CONNECT_SECONDS = 10
ANSWER_SECONDS = 60


def connect_postgresql(url: str, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    """A connection to a database of PostgreSQL."""
    plain_url = urlsplit(url)._replace(scheme="postgresql").geturl()
    return psycopg.connect(plain_url, autocommit=autocommit, connect_timeout=CONNECT_SECONDS)


def connect_mariadb(url: str) -> pymysql.connections.Connection[Any]:
    """A connection to a database of MariaDB, with the settings that claims need."""
    parts = urlsplit(url)
    connection: pymysql.connections.Connection[Any] = pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or "root"),
        password=unquote(parts.password or ""),
        database=parts.path.strip("/"),
        charset="utf8mb4",
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        client_flag=CLIENT.MULTI_STATEMENTS,
    )
    with connection.cursor() as cursor:
        # VCPU has the id 0. A snapshot from before the locks would oversell.
        cursor.execute("SET SESSION sql_mode = 'TRADITIONAL,NO_AUTO_VALUE_ON_ZERO'")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return connection
