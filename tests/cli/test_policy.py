"""`roost policy sample`, and the names by which the tools of oslo find options and rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from roost.api.routes import ROUTES
from support.servers.live_server import clean_environment
from support.waiting import SECONDS_MAX

RULES = {route.rule for route in ROUTES if route.rule is not None}


def program(name: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env=clean_environment(environment),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sample_has_every_rule_with_its_requests() -> None:
    text = program("roost", "policy", "sample")
    # With the comment signs gone, it is the policy that holds without a file.
    rules = yaml.safe_load(re.sub(r'^#(".*)$', r"\1", text, flags=re.MULTILINE))
    assert rules.keys() >= RULES
    assert rules["placement:reshaper:reshape"] == "rule:service_api"
    assert "# POST  /reshaper\n" in text
    assert "# PUT  /allocations/{consumer}\n" in text


@pytest.mark.slow
def test_the_tools_of_oslo_find_options_and_rules(tmp_path: Path) -> None:
    options = program("oslo-config-generator", "--namespace", "roost")
    assert "#max_allocation_candidates = 100000" in options
    rules = program("oslopolicy-sample-generator", "--namespace", "roost")
    assert '"placement:usages"' in rules
    (tmp_path / "policy.yaml").write_text("'placement:usages': 'role:reader'\n")
    (tmp_path / "placement.conf").write_text("[oslo_policy]\npolicy_file = policy.yaml\n")
    merged = program(
        "oslopolicy-policy-generator", "--namespace", "roost", OS_PLACEMENT_CONFIG_DIR=str(tmp_path)
    )
    assert '"placement:usages": "role:reader"' in merged
