"""Run the public Placement API test suite against a live server.

The suite is the set of gabbi files inside the package openstack-placement, read from where that
is installed. Every file gets a server and a database of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType

import httpx

from databases import KINDS, Database, DatabaseError, Databases, open_databases
from report import Count, Progress, print_table, write_json
from server import Program, Server, ServerError, reference, roost
from suite import FileResult, SuiteError, SuiteFile, load_all, load_expected, load_matching
from workers import Job, run_jobs

EXPECTED = Path(__file__).with_name("expected.txt")

EPILOG = """\
examples, with PYTHON for the Python of the virtual environment made from requirements.txt:
  PYTHON conformance/run.py --roost .venv/bin/roost
  PYTHON conformance/run.py --database sqlite --database postgresql --json results.json
  PYTHON conformance/run.py --only 'allocations*' --only usage -v
  PYTHON conformance/run.py --server reference --all

environment:
  ROOST_TEST_POSTGRESQL  superuser's URL, default postgresql://postgres@127.0.0.1:5432/postgres;
                         where no server answers, a private server is made and removed again
  ROOST_TEST_MARIADB     administrator's URL, default mysql://root@127.0.0.1:3306
  TMPDIR                 where configuration, logs and SQLite files are put

The last line is 'N passed, M failed'. The exit status is 0 if tests ran and all passed, 1 if a
test failed or none ran, and 2 if the run could not be started.
"""


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--roost",
        default=".venv/bin/roost",
        metavar="COMMAND",
        help="the roost to be started (default: %(default)s)",
    )
    add(
        "--server",
        choices=("roost", "reference"),
        default="roost",
        help="the server under test; the reference, which needs uwsgi, checks this runner",
    )
    add(
        "--database",
        action="append",
        choices=KINDS,
        help="may be repeated; one run on each (default: sqlite)",
    )
    selection = parser.add_mutually_exclusive_group()
    selection.add_argument(
        "--all", action="store_true", help="all files of the suite, not only those in expected.txt"
    )
    selection.add_argument(
        "--only",
        action="append",
        metavar="GLOB",
        help="the files of the suite whose names match; may be repeated",
    )
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="how many files at a time (default: %(default)s)",
    )
    add("-v", "--verbose", action="store_true", help="print every test that failed, and why")
    add("--keep", action="store_true", help="keep configuration, logs and databases")
    add("--json", type=Path, metavar="FILE", help="write the results to this file")
    parsed = parser.parse_args(arguments)
    if parsed.jobs < 1:
        parser.error("--jobs must be at least 1")
    if parsed.json and not parsed.json.absolute().parent.is_dir():
        parser.error(f"--json: {parsed.json.absolute().parent} is not a directory")
    return parsed


def find_program(arguments: argparse.Namespace) -> Program:
    """Return the program to be started as the server."""
    if arguments.server == "reference":
        return reference()
    found = shutil.which(arguments.roost)
    if found is None:
        raise ServerError(f"there is no command {arguments.roost}; name an existing one by --roost")
    # Servers run in a directory of their own.
    return roost(Path(found).absolute())


def find_files(arguments: argparse.Namespace) -> list[SuiteFile]:
    """Load the selected files, the longest first, so that no long file runs alone at the end."""
    if arguments.only:
        files = load_matching(arguments.only)
    else:
        files = load_all() if arguments.all else load_expected(EXPECTED)
    return sorted(files, key=lambda file: len(file.content["tests"]), reverse=True)


def make_template(databases: Databases, program: Program, directory: Path) -> Database | None:
    """Let the server initialise one database, of which each file then gets a copy."""
    if not databases.can_copy:
        return None
    empty = databases.create()
    with Server(program, empty, directory, {}, {}) as server:
        # A server may write some rows only at its first request.
        headers = {"x-auth-token": "admin"}
        httpx.get(f"{server.url}/traits", headers=headers, trust_env=False, verify=False)
    return replace(empty, empty=False)


def run_on(
    databases: Databases,
    program: Program,
    files: list[SuiteFile],
    directory: Path,
    arguments: argparse.Namespace,
) -> list[FileResult]:
    """Run the files, each on a database of its own."""
    try:
        template = make_template(databases, program, directory / "template")
    except ServerError as error:
        # A server that cannot start once will not start for any file.
        print(f"error: {error}", file=sys.stderr, flush=True)
        return [file.failed(str(error)) for file in files]

    def jobs() -> Iterator[Job]:
        for file in files:
            database = databases.copy(template) if template else databases.create()
            yield Job(file, program, database, directory / file.path.stem)

    progress = Progress(len(files))

    def finished(job: Job, result: FileResult) -> None:
        if not arguments.keep:
            databases.drop(job.database)
        progress.add(result)

    run_jobs(jobs(), arguments.jobs, finished)
    return progress.results


@contextmanager
def work_directory(*, keep: bool) -> Iterator[Path]:
    """Make a directory; at the end, remove it or, with `keep`, print its path."""
    directory = Path(tempfile.mkdtemp(prefix="roost-conformance-"))
    try:
        yield directory
    finally:
        if keep:
            print(f"kept: {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)


def run(arguments: argparse.Namespace) -> int:
    """Run the selected files on the selected databases and return the exit status."""
    program = find_program(arguments)
    files = find_files(arguments)
    kinds = list(dict.fromkeys(arguments.database or ["sqlite"]))
    suite = f"openstack-placement {version('openstack-placement')}"
    results: dict[str, list[FileResult]] = {}
    with ExitStack() as stack:
        directory = stack.enter_context(work_directory(keep=arguments.keep))
        # All databases are opened before the first run, so a missing server is an error at once.
        opened = {
            kind: stack.enter_context(
                open_databases(kind, directory / kind / "databases", keep=arguments.keep)
            )
            for kind in kinds
        }
        for kind, databases in opened.items():
            print(f"{program.name} on {kind}, {suite}, files: {len(files)}", flush=True)
            results[kind] = run_on(databases, program, files, directory / kind, arguments)
            print_table(f"{program.name} on {kind}", results[kind], verbose=arguments.verbose)
    if arguments.json:
        write_json(arguments.json, program.name, results)
    total = Count.of(result for group in results.values() for result in group)
    print(total)
    return 0 if total.passed and not total.failed else 1


def interrupt_on_termination() -> None:
    """Let SIGTERM and SIGHUP raise an exception, as Ctrl-C does, so that the run cleans up."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        # A second signal would interrupt the cleaning up.
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in signals:
        signal.signal(number, interrupt)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parsed = parse_arguments(arguments)
    interrupt_on_termination()
    try:
        return run(parsed)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (DatabaseError, PackageNotFoundError, ServerError, SuiteError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
