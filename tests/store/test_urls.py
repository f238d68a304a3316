"""Database URLs: an error names the fault, and never shows the password."""

from __future__ import annotations

import pytest

from roost.store.connections.driver_errors import reason
from roost.store.connections.errors import DatabaseUnusable
from roost.store.connections.urls import parse_url


@pytest.mark.parametrize(
    ("url", "parameters", "words"),
    [
        ("postgresql://h/d?foo=bar", "", ("'foo'", "Remove it")),
        ("postgresql://h/d?sslmod=require", "", ("'sslmod'", "'sslmode'")),
        ("postgresql://h/d", "aplication_name=roost", ("'application_name'",)),
        ("mysql://h/d?charst=utf8", "", ("'charst'", "'charset'")),
        ("mysql+pymysql://h/d?ssl_c=/ca.pem", "", ("'ssl_c'", "'ssl_ca'")),
        ("sqlite:////x.db?timout=3", "", ("'timout'", "'timeout'")),
        ("sqlite:////x.db?timeout=secret", "", ("'timeout'", "value")),
        ("mysql://h/d?connect_timeout=secret", "", ("'connect_timeout'", "value")),
        ("mysql://h/d?charset=utf8&charset=secret", "", ("'charset'", "more than once")),
        ("mysql://h/d?plugin=secret", "", ("'plugin'", "value")),
        ("mysql://h/d?charset", "", ("name=value",)),
        ("mysql://h/d", "secret", ("name=value",)),
        ("mysql://root:secret@h", "", ("names no database",)),
        ("postgresql://root:secret@h/?sslmode=require", "", ("names no database",)),
        ("sqlite:///file:/x.db?uri=true", "", ("a path",)),
        ("sqlite://user:secret@/x.db", "", ("three slashes",)),
        ("postgresql://h/d\nmax_retries = 3", "", ("second line",)),
    ],
)
def test_an_url_that_cannot_be_used_is_refused_without_secrets(
    url: str, parameters: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(DatabaseUnusable) as refused:
        parse_url(url, parameters)
    for word in words:
        assert word in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "mysql+pymysql://u@h/d?charset=utf8mb4&ssl_ca=/ca.pem&ssl_check_hostname=false",
        "mysql://u:p@h/d?unix_socket=/run/mysql@home.sock&read_default_file=/etc/my.cnf",
        "postgresql://u:p@h/d?host=a:1&host=b:2&sslmode=require",
        "postgresql://u:p@/d?host=@abstract&options=-c%20statement_timeout%3D5s",
        "postgresql://user@domain:p@h/d",
        "sqlite:////x.db?timeout=3",
    ],
)
def test_an_option_that_the_driver_knows_is_accepted(url: str) -> None:
    assert parse_url(url).query or "?" not in url


@pytest.mark.parametrize("backend", ["postgresql", "mysql", "mysql+pymysql"])
@pytest.mark.parametrize(
    "password",
    ["se@cret", "se@cr/et", "se@cr#et", "se@cr:et", "se@cr?et", "se@cr?et=1", "@secret", "secret@"],
)
def test_a_password_with_an_at_sign_is_refused_and_not_shown(backend: str, password: str) -> None:
    with pytest.raises(DatabaseUnusable, match="%40") as refused:
        parse_url(f"{backend}://user:{password}@db.example/placement")
    assert "cr" not in str(refused.value)


@pytest.mark.parametrize("password", ["se/cret", "se#cret", "se:cret", "se?cret", "50%", "a%40b"])
def test_other_special_characters_in_a_password_are_kept(password: str) -> None:
    url = parse_url(f"postgresql://user:{password}@db.example/placement", "sslmode=require")
    assert url.password == password.replace("%40", "@")
    assert (url.host, url.database, dict(url.query)) == (
        "db.example",
        "placement",
        {"sslmode": "require"},
    )


def test_the_reason_of_a_driver_is_one_line_without_passwords() -> None:
    url = parse_url("postgresql://user:first@h/d?sslpassword=second")
    said = reason(OSError(1, "neither 'first' nor 'second' is right.\nmore"), url)
    assert said == "neither '***' nor '***' is right"
