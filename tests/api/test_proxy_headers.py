"""What proxies say about the requests of their clients, and what clients pretend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.api.http.proxy_headers import apply_proxy_headers
from roost.model.errors import ConfigurationError
from roost.model.proxies import TrustedProxies
from roost.store.database import Database
from support.api_client import in_process_client, settings_for

LOCAL = TrustedProxies.of(["127.0.0.0/8", "::1", "unix", "10.0.0.0/24"])
KEYS = ("FORWARDED", *(f"X_FORWARDED_{name}" for name in ("FOR", "PROTO", "HOST", "PREFIX")))


def seen(peer: str = "127.0.0.1", **headers: str) -> dict[str, Any]:
    """What the application sees of a request with these headers."""
    environ: dict[str, Any] = {
        "REMOTE_ADDR": peer,
        "wsgi.url_scheme": "http",
        "HTTP_HOST": "roost.example",
        "SCRIPT_NAME": "",
        **{f"HTTP_{name.upper()}": value for name, value in headers.items()},
    }
    apply_proxy_headers(environ, LOCAL)
    return environ


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        # The client wrote the first address itself. The proxy added the second one.
        ("198.51.100.9, 192.0.2.1", "192.0.2.1"),
        # Two trusted proxies in a row.
        ("198.51.100.9, 192.0.2.1, 10.0.0.7", "192.0.2.1"),
        ("10.0.0.8, 10.0.0.7", "10.0.0.8"),
        ("192.0.2.1, ", "192.0.2.1"),
        # The proxy does not know its client. What stands before is not to be believed.
        ("192.0.2.1, unknown", "127.0.0.1"),
        ("192.0.2.1\r\nX-Roles: admin", "127.0.0.1"),
        ("", "127.0.0.1"),
        (",,,", "127.0.0.1"),
    ],
)
def test_the_address_is_the_last_one_that_is_no_trusted_proxy(header: str, address: str) -> None:
    assert seen(x_forwarded_for=header)["REMOTE_ADDR"] == address


@pytest.mark.parametrize(
    ("headers", "url"),
    [
        ({"x_forwarded_proto": "https"}, "https://roost.example"),
        ({"x_forwarded_proto": "HTTPS", "x_forwarded_host": "cloud.example:8443"},
         "https://cloud.example:8443"),
        ({"x_forwarded_proto": "javascript"}, "http://roost.example"),
        ({"x_forwarded_host": "evil.example/path"}, "http://roost.example"),
        ({"x_forwarded_host": "[2001:db8::1]:80"}, "http://[2001:db8::1]:80"),
        # A proxy that adds to the lists: the value beside the client's address counts.
        ({"x_forwarded_for": "192.0.2.1, 10.0.0.7", "x_forwarded_proto": "https, http"},
         "https://roost.example"),
        # The client pretends to come over TLS.
        ({"x_forwarded_for": "192.0.2.1", "x_forwarded_proto": "https, http"},
         "http://roost.example"),
        ({"forwarded": 'for=192.0.2.1;proto=https;host="cloud.example"'}, "https://cloud.example"),
        ({"forwarded": "For=192.0.2.1;Proto=https, for=10.0.0.7;proto=http"},
         "https://roost.example"),
        ({"forwarded": "proto=https, for=192.0.2.1;proto=http"}, "http://roost.example"),
        ({"forwarded": 'for="a,b";proto="http\\"s"'}, "http://roost.example"),
    ],
)  # fmt: skip
def test_scheme_and_host_are_those_of_the_client(headers: dict[str, str], url: str) -> None:
    environ = seen(**headers)
    assert f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}" == url


@pytest.mark.parametrize(
    ("headers", "address", "url"),
    [
        ({"x_forwarded_for": "192.0.2.1"}, "192.0.2.1", "http://roost.example"),
        ({"x_forwarded_for": "nonsense"}, "127.0.0.1", "http://roost.example"),
        ({"x_forwarded_for": "192.0.2.1," * 2000}, "127.0.0.1", "http://roost.example"),
        ({"x_forwarded_proto": "https"}, "127.0.0.1", "https://roost.example"),
        # No field of `Forwarded` says a prefix, so both headers may come from one proxy.
        ({"x_forwarded_prefix": "/placement"}, "198.51.100.9", "https://evil.example"),
        ({}, "198.51.100.9", "https://evil.example"),
    ],
)
def test_forwarded_counts_only_without_x_forwarded_headers(
    headers: dict[str, str], address: str, url: str
) -> None:
    """Proxies that write `X-Forwarded-*` let the `Forwarded` of their clients pass."""
    environ = seen(forwarded="for=198.51.100.9;proto=https;host=evil.example", **headers)
    assert environ["REMOTE_ADDR"] == address
    assert f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}" == url


@pytest.mark.parametrize("name", KEYS)
def test_headers_beyond_8_kilobytes_do_not_count(name: str) -> None:
    value = {
        "FORWARDED": "for=192.0.2.1;proto=https;host=cloud.example",
        "X_FORWARDED_FOR": "192.0.2.1",
        "X_FORWARDED_PROTO": "https",
        "X_FORWARDED_HOST": "cloud.example",
        "X_FORWARDED_PREFIX": "/cloud",
    }[name]
    unchanged = seen()

    def differs(length: int) -> bool:
        header = value.rjust(length, ",")
        return seen(**{name: header}) != unchanged | {f"HTTP_{name}": header}

    assert differs(8192)
    assert not differs(8193)


@pytest.mark.parametrize(
    ("prefix", "mounted"),
    [
        ("/placement", "/placement"),
        ("/cloud/placement/", "/cloud/placement"),
        ("//evil.example", ""),
        ("placement", ""),
        ("/a b", ""),
        ("/a\nb", ""),
        ("/%2Fevil.example", ""),
        ("/", ""),
    ],
)
def test_a_prefix_is_a_path(prefix: str, mounted: str) -> None:
    assert seen(x_forwarded_prefix=prefix)["SCRIPT_NAME"] == mounted


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "unix", "", "10.0.0.7"])
def test_trusted_peers_are_believed(peer: str) -> None:
    assert seen(peer, x_forwarded_for="192.0.2.1")["REMOTE_ADDR"] == "192.0.2.1"


@pytest.mark.parametrize("peer", ["192.0.2.66", "10.0.1.7", "2001:db8::1", "nonsense"])
def test_a_direct_client_pretends_in_vain(peer: str) -> None:
    environ = seen(
        peer,
        x_forwarded_for="127.0.0.1",
        x_forwarded_proto="https",
        x_forwarded_host="evil.example",
        x_forwarded_prefix="/evil",
        forwarded="for=127.0.0.1;proto=https",
    )
    assert environ == seen(peer)


@given(
    st.dictionaries(st.sampled_from(KEYS), st.text(st.characters(max_codepoint=255), max_size=60))
)
def test_garbage_never_breaks_a_request_or_the_log(headers: dict[str, str]) -> None:
    environ = seen(**headers)
    for key in ("REMOTE_ADDR", "HTTP_HOST", "wsgi.url_scheme"):
        assert environ[key].isprintable()
        assert " " not in environ[key]


def test_a_name_that_is_no_address_is_refused_at_start(database: Database, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"trusted_proxies.*haproxy.example"):
        settings_for(database, tmp_path, "[roost]\ntrusted_proxies = haproxy.example\n")


@pytest.mark.parametrize(
    ("trusted", "location"),
    [
        ("unix", "https://cloud.example/traits/CUSTOM_GOLD"),
        ("127.0.0.1", "http://roost.example/traits/CUSTOM_GOLD"),
    ],
)
def test_the_operator_names_the_proxies(
    database: Database, tmp_path: Path, trusted: str, location: str
) -> None:
    configuration = (
        "[api]\nauth_strategy = noauth2\n[oslo_middleware]\nenable_proxy_headers_parsing = true\n"
        f"[roost]\ntrusted_proxies = {trusted}\n"
    )
    behind_proxy = in_process_client(database, tmp_path, configuration)
    headers = {"x-forwarded-proto": "https", "x-forwarded-host": "cloud.example"}
    answer = behind_proxy.request("PUT", "/traits/CUSTOM_GOLD", headers=headers)
    assert answer.headers["location"] == location
