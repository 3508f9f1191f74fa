"""Tests that passed in one run are left out of another: a plugin of pytest, with two options.

`--passed-to FILE` writes the ids of the tests that passed, one a line, and `--not-passed-in FILE`
deselects those. CI runs the tests twice, on two installations; the second run need not repeat what
the first has shown.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options; a file's path is relative to the folder where pytest was started."""
    group = parser.getgroup("passed", "tests that passed in another run")
    group.addoption("--passed-to", metavar="FILE", help="write the ids of the tests that passed")
    group.addoption("--not-passed-in", metavar="FILE", help="leave out the tests that passed there")


def pytest_configure(config: pytest.Config) -> None:
    """Follow the results, in the one process that gets those of all workers."""
    path = config.getoption("passed_to")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passed(config.invocation_params.dir / path))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that the file names; a file that cannot be read ends the run."""
    path = config.getoption("not_passed_in")
    if not path:
        return
    try:
        text = (config.invocation_params.dir / path).read_text(encoding="utf-8")
    except OSError as error:
        raise pytest.UsageError(f"--not-passed-in: {error}") from error
    passed = set(text.splitlines())
    left_out = [item for item in items if _line(item.nodeid) in passed]
    items[:] = [item for item in items if _line(item.nodeid) not in passed]
    config.hook.pytest_deselected(items=left_out)


class Passed:
    """The tests of this run that passed: called, and failed neither in the call nor around it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.called: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a part of a test ended."""
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self.called.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the ids in order."""
        lines = sorted(_line(test) for test in self.called - self.failed)
        self.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _line(nodeid: str) -> str:
    """Return a test's id as one line."""
    return "\\n".join(nodeid.splitlines())
