"""The public test suite: the gabbi files inside the installed openstack-placement package."""

from __future__ import annotations

import importlib.util
import socket
import sys
import unittest
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import yaml
from gabbi import handlers, suitemaker

# The only exception. This test sends a Content-Length that is no number. An HTTP server may
# refuse the request before the application sees it, so a 400 with any body passes.
MALFORMED_LENGTH = ("basic-http.yaml", "bad content length not int")


class SuiteError(Exception):
    """The suite, or a selected file of it, does not exist."""


@dataclass(frozen=True)
class Failure:
    """A failed test, its request and the answer."""

    test: str
    reason: str
    request: str = ""
    status: str = ""
    body: str = ""


@dataclass
class FileResult:
    """The results of the tests of one file."""

    file: str
    fixture: str
    passed: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """The number of tests that failed."""
        return len(self.failures)


class SuiteFile:
    """One YAML file of the suite."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        self.fixture = str(self.content["fixtures"][0])

    def failed(self, reason: str) -> FileResult:
        """Return the result of a file whose tests could not be run."""
        failures = [Failure(test["name"], reason) for test in self.content["tests"]]
        return FileResult(self.name, self.fixture, failures=failures)

    def run(self, port: int) -> FileResult:
        """Run the tests, in their order, against the server on a loopback port."""
        # Without TLS, no test needs the certificates, whose loading takes time.
        defaults = self.content.get("defaults", {}) | {"cert_validate": False}
        suite = suitemaker.test_suite_from_dict(
            loader=unittest.defaultTestLoader,
            test_base_name=self.path.stem,
            suite_dict=self.content | {"defaults": defaults},
            test_directory=str(self.path.parent),
            host="127.0.0.1",
            port=port,
            fixture_module=None,
            intercept=None,
            handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
        )
        result = FileResult(self.name, self.fixture)
        for test in suite:
            if (self.name, test.test_data["name"]) == MALFORMED_LENGTH:
                test.http = _UncheckedHttp()
            outcome = unittest.TestResult()
            test.run(outcome)
            _record(result, test, outcome)
        return result


def _record(result: FileResult, test: Any, outcome: unittest.TestResult) -> None:
    """Add the outcome of one of gabbi's tests to the result of its file."""
    # unittest gives whole tracebacks. Their frames are gabbi's, so only the last line is kept.
    problems = [trace.rpartition("\nAssertionError: ")[2] for _test, trace in outcome.failures]
    problems += [trace.strip().rpartition("\n")[2] for _test, trace in outcome.errors]
    if outcome.unexpectedSuccesses:
        problems.append("the suite expects this test to fail, but it passed")
    if not problems:
        # A test that fails as the suite expects counts as passed.
        result.skipped += len(outcome.skipped)
        result.passed += not outcome.skipped
        return
    name = test.test_data["name"]
    status = str((getattr(test, "response", None) or {}).get("status", ""))
    if (result.file, name) == MALFORMED_LENGTH and status == "400":
        result.passed += 1
        result.notes.append(f"{name!r}: answered by the HTTP server itself, with 400")
        return
    reason = problems[0].strip()
    request = f"{test.test_data['method']} {getattr(test, 'url', test.test_data['url'])}"
    body = str(getattr(test, "output", None) or "")
    result.failures.append(Failure(name, reason[:2000], request, status, body[:2000]))


class _UncheckedHttp:
    """Stands in for gabbi's client, and sends headers that httpx would refuse to send."""

    def request(
        self,
        absolute_uri: str,
        *,
        method: str,
        body: bytes,
        headers: dict[str, str],
        redirect: bool,
        timeout: float,
    ) -> tuple[httpx.Headers, bytes]:
        """Send a request as it is, and return the answer in the form that gabbi wants."""
        target = urlsplit(absolute_uri)
        lines = [f"{method} {target.path} HTTP/1.1", f"Host: {target.netloc}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        address = (target.hostname, target.port)
        with socket.create_connection(address, timeout=float(timeout)) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            with HTTPResponse(connection, method=method) as response:
                response.begin()
                content = response.read()
                answer = httpx.Headers(response.getheaders())
        answer["status"] = str(response.status)
        answer["reason"] = response.reason
        return answer, content


def suite_directory() -> Path:
    """Return the directory of the installed package that holds the YAML files."""
    package = importlib.util.find_spec("placement")
    if package is None or package.origin is None:
        raise SuiteError(
            f"openstack-placement is not installed for {sys.executable}; "
            "see conformance/requirements.txt"
        )
    return Path(package.origin).parent / "tests" / "functional" / "gabbits"


def expected_names(listing: Path) -> list[str]:
    """Read the names of the files that have to pass."""
    lines = (line.partition("#")[0].strip() for line in listing.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def load_all() -> list[SuiteFile]:
    """Load all files of the suite."""
    return [SuiteFile(path) for path in sorted(suite_directory().glob("*.yaml"))]


def load_expected(listing: Path) -> list[SuiteFile]:
    """Load the files that have to pass; a file that the installed suite lacks is an error."""
    directory = suite_directory()
    names = expected_names(listing)
    missing = [name for name in names if not (directory / name).exists()]
    if missing:
        raise SuiteError(
            f"{listing.name} names files that {directory} lacks: {', '.join(missing)}; install the "
            "openstack-placement of conformance/requirements.txt"
        )
    return [SuiteFile(directory / name) for name in names]


def load_matching(patterns: Iterable[str]) -> list[SuiteFile]:
    """Load the files of the suite that match a pattern, with or without the .yaml."""
    patterns = list(patterns)
    files = [
        path
        for path in sorted(suite_directory().glob("*.yaml"))
        if any(fnmatch(path.name, glob) or fnmatch(path.stem, glob) for glob in patterns)
    ]
    if not files:
        raise SuiteError(f"no file of the suite matches --only {' or '.join(patterns)}")
    return [SuiteFile(path) for path in files]
