"""A progress bar on the terminal or in a notebook for long runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from homdp_ppl.learning.loop import nothing

PATIENCE = 2.0  # seconds before progress is shown
PAUSE = 0.2  # seconds between two updates in a notebook


@contextmanager
def progress_bar(wanted: bool | None, rounds: int) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr, or below the cell of a notebook.

    Parameters
    ----------
    wanted
        Whether to show progress. None shows it on a terminal if the run takes longer than two
        seconds, and never in a notebook, whose outputs are kept.
    rounds
        The total number of rounds.
    """
    if wanted is False:
        yield nothing
        return
    if in_notebook():
        yield notebook_bar(rounds) if wanted else nothing
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


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def notebook_bar(rounds: int) -> Callable[[int], None]:
    """Display a progress bar below the cell, and return a function that advances it."""
    from IPython.display import display

    counted, shown = [0], [time.perf_counter()]
    show: Any = display
    handle = show(bar_html(0, rounds), raw=True, display_id=True)

    def done(n: int) -> None:
        counted[0] += n
        now = time.perf_counter()
        if counted[0] >= rounds or now - shown[0] > PAUSE:
            shown[0] = now
            handle.update(bar_html(counted[0], rounds), raw=True)

    return done


def bar_html(done: int, rounds: int) -> dict[str, Any]:
    """A progress bar as text and as HTML.

    Examples
    --------
    >>> bar_html(20, 1000)["text/plain"]
    'learning: 20 of 1,000'
    """
    said = f"learning: {done:,} of {rounds:,}"
    bar = f'<progress value="{done}" max="{rounds}" aria-label="learning"></progress>'
    return {"text/plain": said, "text/html": f"<label>{bar} {said}</label>"}
