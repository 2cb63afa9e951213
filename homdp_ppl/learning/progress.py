"""A progress bar on the terminal for long runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from homdp_ppl.learning.loop import nothing

PATIENCE = 2.0  # seconds before progress is shown


@contextmanager
def progress_bar(wanted: bool | None, rounds: int) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr.

    Parameters
    ----------
    wanted
        Whether to show progress. None shows it on a terminal if the run takes longer than two
        seconds.
    rounds
        The total number of rounds.
    """
    if wanted is False:
        yield nothing
        return
    from rich.console import Console  # imported only when needed
    from rich.progress import Progress

    console = Console(stderr=True)
    if wanted is None and not console.is_terminal:
        yield nothing
        return
    start = time.perf_counter()
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("learning", total=rounds, visible=bool(wanted))

        def done(n: int) -> None:
            visible = bool(wanted) or time.perf_counter() - start > PATIENCE
            bar.update(task, advance=n, visible=visible)

        yield done
