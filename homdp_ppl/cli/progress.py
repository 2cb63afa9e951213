"""Progress of a study on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from homdp_ppl.cli.console import say
from homdp_ppl.study.specification import Unit


class StudyProgress:
    """A progress bar on a terminal, or one line per finished unit elsewhere.

    Parameters
    ----------
    units
        The units left to do.
    episodes
        Episodes per run.
    """

    def __init__(self, units: Sequence[Unit], episodes: int) -> None:
        self._units, self._episodes = units, episodes
        self._console, self._written = Console(stderr=True), Counter[Unit]()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
        )
        self._bar = Progress(
            *columns, console=self._console, transient=True, disable=not self._console.is_terminal
        )

    def __enter__(self) -> StudyProgress:
        self._task = self._bar.add_task(
            "episodes", total=self._episodes * sum(len(unit.seeds) for unit in self._units)
        )
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def __call__(self, unit: Unit, n: int) -> None:
        """Count ``n`` more rounds of a unit."""
        self._bar.update(self._task, advance=n, description=unit.rule)
        before, whole = self._written[unit], self._episodes * len(unit.seeds)
        self._written[unit] += n
        if before < whole <= self._written[unit] and not self._console.is_terminal:
            done = sum(
                self._written[one] >= self._episodes * len(one.seeds) for one in self._written
            )
            say(self._console, f"{done} of {len(self._units)} done: {unit.name}")


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show the current step while it runs, on a terminal."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else nullcontext():
        yield


class _Rate(TextColumn):
    """Episodes per second."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Any) -> Any:
        """The rate, as soon as it is known."""
        return super().render(task).append("" if task.speed is None else f"{task.speed:,.0f}/s")
