"""Certificates for tests, and the authority that signs them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path


class Authority:
    """An authority that signs certificates for 127.0.0.1."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = directory / f"{name}.pem"
        own = self._builder(self._name, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._write(self.file, own.sign(self._key, hashes.SHA256()))

    def issue(self, name: str, password: bytes | None = None) -> Issued:
        """A new pair in the files of this name; a password encrypts the key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        address = x509.IPAddress(IPv4Address("127.0.0.1"))
        builder = self._builder(subject, key.public_key()).add_extension(
            x509.SubjectAlternativeName([address]), critical=False
        )
        issued = Issued(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        issued.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(password)
                if password
                else serialization.NoEncryption(),
            )
        )
        self._write(issued.certificate, builder.sign(self._key, hashes.SHA256()))
        return issued

    def client_context(self, own: Issued | None = None) -> ssl.SSLContext:
        """The context of a client that knows this authority, and may have a certificate."""
        context = ssl.create_default_context(cafile=str(self.file))
        if own is not None:
            context.load_cert_chain(own.certificate, own.key)
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
        )

    def _write(self, path: Path, certificate: x509.Certificate) -> None:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
