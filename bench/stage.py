"""Where a run happens: directories, databases, and the servers on them."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clouds import Cloud, Fill, make_sqlite
from results import Results
from targets import Target, reference_program, roost_program, running, static_program


@dataclass(frozen=True)
class Servers:
    """The servers of a measurement, each on its own database with the same cloud."""

    cloud: Cloud
    roost: Target
    reference: Target | None


@dataclass
class Stage:
    """The surroundings of every scenario: directories, servers and results."""

    directory: Path
    roost: Path
    results: Results
    workers: int = 2
    rounds: int = 5
    """Turns of each server."""
    seconds: float = 0.2
    """The length of a turn; a request that began before its end is finished."""
    quick: bool = False
    compare_large: bool = False
    _stack: ExitStack = field(default_factory=ExitStack)
    _static: Target | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def close(self) -> None:
        """Stop the servers that scenarios share."""
        self._stack.close()

    @property
    def static(self) -> Target:
        """The server that sends published bodies; one for the whole run."""
        if self._static is None:
            self._bodies.mkdir()
            # The static server runs the modules of Roost's server.
            program = static_program(self.roost.with_name("python"), self.workers, self._bodies)
            home = self.directory / "static"
            self._static = self._stack.enter_context(running(program, "sqlite://", home))
        return self._static

    def publish(self, body: bytes) -> str:
        """Give a body to the static server and return its path there."""
        assert self.static
        name = f"body-{next(self._numbers)}"
        (self._bodies / name).write_bytes(body)
        return f"/{name}"

    @property
    def _bodies(self) -> Path:
        return self.directory / "bodies"

    @contextmanager
    def home(self) -> Iterator[Path]:
        """A directory that is removed at the end."""
        with tempfile.TemporaryDirectory(dir=self.directory) as name:
            yield Path(name)

    @contextmanager
    def run_roost(self, url: str, workers: int | None = None) -> Iterator[Target]:
        """Run Roost on a database."""
        with (
            self.home() as home,
            running(roost_program(self.roost, workers or self.workers), url, home) as target,
        ):
            yield target

    @contextmanager
    def run_reference(self, url: str, workers: int = 1) -> Iterator[Target]:
        """Run the reference on a database; one process is enough to measure CPU."""
        with self.home() as home, running(reference_program(workers), url, home) as target:
            yield target

    @contextmanager
    def servers(
        self,
        name: str,
        fill: Fill,
        *,
        reference: bool = True,
        workers: int | None = None,
        reference_workers: int = 1,
    ) -> Iterator[Servers]:
        """Run the servers on a new cloud, in SQLite."""
        with ExitStack() as stack:
            home = stack.enter_context(self.home())
            self.results.progress(f"making {name}")
            ours, theirs = home / "roost.sqlite", home / "reference.sqlite"
            cloud = make_sqlite(fill, ours, self.roost)
            other = None
            if reference:
                shutil.copy(ours, theirs)
                url = f"sqlite:///{theirs}"
                other = stack.enter_context(self.run_reference(url, reference_workers))
            target = stack.enter_context(self.run_roost(f"sqlite:///{ours}", workers))
            yield Servers(cloud, target, other)


Scenario = Callable[[Stage], None]
"""Measures requests and adds rows to the results of the stage."""
