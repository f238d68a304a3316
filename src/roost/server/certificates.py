"""The certificate of a server, its key and the authority of its clients, as their files say."""

from __future__ import annotations

import logging
import os
import ssl
from dataclasses import dataclass

from roost.configuration.regular_files import check_regular
from roost.model.errors import ConfigurationError

_LOG = logging.getLogger(__name__)

# How often the server looks whether the files are new.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files in PEM form, as the operator names them."""

    certificate: str
    # The key may stand in the file of the certificate.
    key: str
    # Clients need a certificate of this authority, if there is one.
    client_authority: str | None = None

    @property
    def all(self) -> list[str]:
        """The names of the files, each once."""
        return list(
            dict.fromkeys(filter(None, (self.certificate, self.key, self.client_authority)))
        )


def certificate_files(
    certificate: str | None, key: str | None, client_authority: str | None
) -> CertificateFiles | None:
    """The files that the operator chose; `None` without TLS."""
    if certificate is not None:
        return CertificateFiles(certificate, key or certificate, client_authority)
    for given, option in ((key, "tls_key"), (client_authority, "tls_client_ca")):
        if given is not None:
            raise ConfigurationError(
                f"[roost]{option} is {given}, but there is no certificate. Name its file with "
                "[roost]tls_cert or --tls-cert."
            )
    return None


class Certificates:
    """The TLS context for new connections. It follows its files.

    A connection keeps the context that it began with.
    """

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._signature = _signature(files)
        self._look_at = 0.0
        self._context = make_context(files)

    def context(self, now: float) -> ssl.SSLContext:
        """The context for a connection that begins now."""
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            if _signature(self._files) != self._signature:
                self.reload()
        return self._context

    def reload(self) -> None:
        """Read the files again. If they cannot be used, the old certificate stays."""
        self._signature = _signature(self._files)
        try:
            self._context = make_context(self._files)
        except ConfigurationError as error:
            _LOG.error("The server keeps its old certificate. %s", error)
        else:
            _LOG.info("The server uses the certificate in %s anew", self._files.certificate)


def make_context(files: CertificateFiles) -> ssl.SSLContext:
    """TLS 1.2 and 1.3 with these files; `ConfigurationError` names the file that is at fault."""
    for name in files.all:
        _check_readable(name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A client that negotiates anew, again and again, would cost the server much and itself little.
    # Tickets save no handshake: each worker would have its own.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    _load_pair(context, files)
    if files.client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(files.client_authority)
        except ssl.SSLError:
            raise ConfigurationError(
                f"{files.client_authority} ([roost]tls_client_ca) has no certificate in PEM form. "
                "Name the file of the authority that signs the certificates of clients."
            ) from None
    return context


def _load_pair(context: ssl.SSLContext, files: CertificateFiles) -> None:
    try:
        context.load_cert_chain(files.certificate, files.key, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigurationError(
                f"The key in {files.key} ([roost]tls_key) does not belong to the certificate in "
                f"{files.certificate} ([roost]tls_cert). Name the files of one pair."
            ) from None
        if not _has_certificate(files.certificate):
            raise ConfigurationError(
                f"{files.certificate} ([roost]tls_cert) has no certificate in PEM form that "
                f"OpenSSL accepts ({_words(error)}). Name the file of the certificate, followed by "
                "those of its authorities."
            ) from None
        raise ConfigurationError(
            f"{files.key} ([roost]tls_key) has no key in PEM form that OpenSSL accepts with the "
            f"certificate in {files.certificate} ({_words(error)}). Name the file of its key."
        ) from None
    except _Encrypted:
        raise ConfigurationError(
            f"The key in {files.key} ([roost]tls_key) is encrypted, and Roost asks for no "
            "password. Decrypt it with `openssl pkey`, and let only the server read the file."
        ) from None


class _Encrypted(Exception):
    """The key needs a password."""


def _refuse_password() -> str:
    # Without this function, OpenSSL would ask for a password at the terminal.
    raise _Encrypted


def _check_readable(name: str) -> None:
    try:
        check_regular(name)
    except OSError as error:
        raise ConfigurationError(
            f"The file {name} of the TLS options cannot be read: {error.strerror}. Name a file "
            f"that the user {os.getuid()} of this process may read."
        ) from None


def _has_certificate(name: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(name)
    except ssl.SSLError:
        return False
    return True


def _words(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


def _signature(files: CertificateFiles) -> list[tuple[int, int, int] | None]:
    """What changes when a file is written or replaced."""
    found: list[tuple[int, int, int] | None] = []
    for name in files.all:
        try:
            status = os.stat(name)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return found
