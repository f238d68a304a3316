"""All scenarios by name, in the order in which they run."""

from __future__ import annotations

import capacity
import claims
import commands
import declaration
import explain
import explosion
import followers
import identity
import overview
import pages
import resilience
import scale
import scrape
import throughput
from candidates import flat, full, nested, sharing
from cloud_creation import cloud_creation
from database_claims import database_claims
from mixed import mixed
from scheduling import scheduling
from shapes import shapes
from stage import Scenario

SCENARIOS: dict[str, Scenario] = {
    "claims": claims.run,
    "identity": identity.run,
    "claims-postgresql": database_claims("postgresql"),
    "claims-mariadb": database_claims("mariadb"),
    "scheduling-postgresql": scheduling("postgresql"),
    "creation-sqlite": cloud_creation("sqlite"),
    "creation-postgresql": cloud_creation("postgresql"),
    "flat-1000": flat(1_000),
    "flat-10000": flat(10_000),
    "nested-1000": nested(1_000),
    "nested-10000": nested(10_000),
    "full-10000": full(10_000),
    "sharing-1000": sharing(1_000),
    "shapes-10000": shapes(10_000),
    "explosion": explosion.run,
    "throughput": throughput.run,
    "mixed-sqlite": mixed("sqlite"),
    "mixed-postgresql": mixed("postgresql"),
    "explain": explain.run,
    "scrape": scrape.run,
    "resilience": resilience.run,
    "capacity": capacity.run,
    "overview": overview.run,
    "followers": followers.run,
    "declaration": declaration.run,
    "pages": pages.run,
    "commands": commands.run,
    "scale": scale.run,
}
QUICK = (
    "claims",
    "claims-postgresql",
    "claims-mariadb",
    "flat-1000",
    "nested-1000",
    "explosion",
    "mixed-sqlite",
)
