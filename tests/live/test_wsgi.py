"""`roost.wsgi:application`, as a WSGI server loads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.servers.live_server import clean_environment
from support.waiting import SECONDS_MAX

pytestmark = pytest.mark.slow

ASK = """
import io, json
from roost.wsgi import application
environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/traits", "QUERY_STRING": "name=in:COMPUTE_NODE",
           "HTTP_X_AUTH_TOKEN": "admin", "HTTP_OPENSTACK_API_VERSION": "placement latest",
           "SERVER_NAME": "x", "SERVER_PORT": "80", "wsgi.url_scheme": "http",
           "wsgi.input": io.BytesIO()}
print(b"".join(application(environ, lambda status, headers: None)).decode())
"""


def ask(home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ASK],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env=clean_environment({"HOME": str(home), **environment}),
    )


def test_the_application_reads_the_configuration_that_the_environment_names(tmp_path: Path) -> None:
    (tmp_path / "placement.conf").write_text(
        f"[api]\nauth_strategy = noauth2\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/x.db\n"
    )
    done = ask(tmp_path, OS_PLACEMENT_CONFIG_DIR=str(tmp_path))
    assert done.stdout.strip() == '{"traits":["COMPUTE_NODE"]}', done.stderr


def test_variables_override_the_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "placement.conf").write_text(
        "[api]\nauth_strategy = keystone\n[placement_database]\nconnection = oracle://nowhere\n"
    )
    done = ask(
        tmp_path,
        OS_PLACEMENT_CONFIG_DIR=str(tmp_path),
        OS_API__AUTH_STRATEGY="noauth2",
        OS_PLACEMENT_DATABASE__CONNECTION=f"sqlite:///{tmp_path}/y.db",
    )
    assert done.stdout.strip() == '{"traits":["COMPUTE_NODE"]}', done.stderr


def test_the_application_refuses_to_start_without_an_auth_strategy(tmp_path: Path) -> None:
    done = ask(tmp_path, OS_PLACEMENT_DATABASE__CONNECTION=f"sqlite:///{tmp_path}/z.db")
    assert done.returncode != 0
    assert "auth_strategy" in done.stderr


def test_options_without_effect_are_named_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "placement.conf").write_text(
        f"[DEFAULT]\nstate_path = /var/lib/placement\n[api]\nauth_strategy = noauth2\n"
        f"[workarounds]\noptimize_for_wide_provider_trees = true\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/x.db\n[unknown]\nx = 1\n"
    )
    done = ask(tmp_path, OS_PLACEMENT_CONFIG_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "[workarounds]optimize_for_wide_provider_trees" in done.stderr
    assert "[DEFAULT]state_path" in done.stderr
