"""Keystone, real and as a stub, and the API that asks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.store.database import Database
from support.api_client import ApiClient, Configured, in_process_client
from support.run_files import run_directory
from support.servers.real_keystone import RealKeystone, main_process, shared_keystone
from support.stubs.identity_stub import IdentityStub


@pytest.fixture(scope="session")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> RealKeystone:
    """A real Keystone with users of every role."""
    return shared_keystone(run_directory(tmp_path_factory) / "keystone", main_process())


@pytest.fixture
def identity() -> Iterator[IdentityStub]:
    """A small identity server, which counts what it is asked."""
    with IdentityStub() as stub:
        yield stub


@pytest.fixture
def configured(database: Database, tmp_path: Path) -> Configured:
    """Makes applications with `auth_strategy = keystone`."""

    def make(section: str, *, new_defaults: bool = True, policy: str = "{}") -> ApiClient:
        configuration = (
            f"[api]\nauth_strategy = keystone\n"
            f"[oslo_policy]\nenforce_new_defaults = {new_defaults}\n"
            f"policy_file = {tmp_path / 'policy.yaml'}\n{section}"
        )
        return in_process_client(database, tmp_path, configuration, policy)

    return make
