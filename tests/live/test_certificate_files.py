"""Certificates that cannot be used: the server does not start, and says which file is at fault."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.model.errors import ConfigurationError
from roost.server.certificates import (
    CertificateFiles,
    Certificates,
    certificate_files,
    make_context,
)
from support.certificates import Authority
from support.fifos import fifo_instead_of
from support.roost_command import roost


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with usable and unusable files."""
    path = tmp_path_factory.mktemp("certificates")
    authority = Authority(path)
    authority.issue("good")
    authority.issue("other")
    authority.issue("locked", password=b"secret")
    (path / "garbage.pem").write_text("no certificate")
    (path / "empty.pem").write_text("")
    return path


@pytest.mark.parametrize(
    ("certificate", "key", "authority", "sentence"),
    [
        ("nowhere.pem", "good.key", None, "nowhere.pem of the TLS options cannot be read: No such"),
        ("good.pem", "nowhere.key", None, "nowhere.key of the TLS options cannot be read: No such"),
        (".", "good.key", None, "cannot be read: Is a directory"),
        ("garbage.pem", "good.key", None, "garbage.pem ([roost]tls_cert) has no certificate"),
        ("empty.pem", "good.key", None, "empty.pem ([roost]tls_cert) has no certificate"),
        ("good.pem", "garbage.pem", None, "garbage.pem ([roost]tls_key) has no key"),
        ("good.pem", "good.pem", None, "good.pem ([roost]tls_key) has no key"),
        ("good.pem", "other.key", None, "other.key ([roost]tls_key) does not belong to the"),
        ("locked.pem", "locked.key", None, "locked.key ([roost]tls_key) is encrypted"),
        ("good.pem", "good.key", "garbage.pem", "garbage.pem ([roost]tls_client_ca) has no cert"),
    ],
)
def test_the_fault_is_named(
    directory: Path, certificate: str, key: str, authority: str | None, sentence: str
) -> None:
    files = CertificateFiles(
        str(directory / certificate),
        str(directory / key),
        None if authority is None else str(directory / authority),
    )
    with pytest.raises(ConfigurationError) as refused:
        make_context(files)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("option", ["--tls-key", "--tls-client-ca"])
def test_a_key_or_an_authority_alone_is_refused(tmp_path: Path, option: str) -> None:
    done = roost("serve", "--db", f"sqlite:///{tmp_path}/x.db", option, "some.pem")
    assert done.status == 78
    assert "--tls-cert" in done.err
    assert not (tmp_path / "x.db").exists()


def test_the_command_names_the_file_and_touches_no_database(tmp_path: Path) -> None:
    done = roost("serve", "--db", f"sqlite:///{tmp_path}/x.db", "--tls-cert", f"{tmp_path}/no.pem")
    assert done.status == 78
    assert f"{tmp_path}/no.pem" in done.err
    assert not (tmp_path / "x.db").exists()


def test_old_protocols_and_new_negotiations_are_off(directory: Path) -> None:
    context = make_context(CertificateFiles(f"{directory}/good.pem", f"{directory}/good.key"))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_one_file_may_have_both(directory: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_text((directory / "good.pem").read_text() + (directory / "good.key").read_text())
    files = certificate_files(str(both), None, None)
    assert files is not None
    assert make_context(files).cert_store_stats()["x509"] == 0


@pytest.fixture
def renewed(tmp_path: Path) -> tuple[Certificates, Callable[[], object]]:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    files = CertificateFiles(str(issued.certificate), str(issued.key))
    return Certificates(files), lambda: authority.issue("server")


def test_files_are_looked_at_once_a_second(
    renewed: tuple[Certificates, Callable[[], object]],
) -> None:
    certificates, renew = renewed
    first = certificates.context(now=10.0)
    renew()
    assert certificates.context(now=10.5) is first
    assert certificates.context(now=11.0) is not first


def test_a_signal_may_ask_for_the_files_at_once(
    renewed: tuple[Certificates, Callable[[], object]],
) -> None:
    certificates, renew = renewed
    first = certificates.context(now=10.0)
    renew()
    certificates.reload()
    assert certificates.context(now=10.0) is not first


@pytest.mark.parametrize("name", ["server.pem", "server.key"])
def test_the_old_certificate_stays_while_a_fifo_stands_in_place_of_a_file(
    renewed: tuple[Certificates, Callable[[], object]], tmp_path: Path, name: str
) -> None:
    certificates, _ = renewed
    first = certificates.context(now=10.0)
    with fifo_instead_of(tmp_path / name):
        assert certificates.context(now=11.0) is first
