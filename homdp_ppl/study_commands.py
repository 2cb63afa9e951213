"""What the commands of studies do: compare, resume and report."""

from __future__ import annotations

import argparse
import json
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from homdp_ppl import study
from homdp_ppl.commands import best, say
from homdp_ppl.continuous import ContinuousWorld
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.page import write_page
from homdp_ppl.report import comparison_table
from homdp_ppl.report.look import counted
from homdp_ppl.study.directory import slug
from homdp_ppl.study.results import Runs, is_complete, write_results
from homdp_ppl.study.running import Finished, find_worlds
from homdp_ppl.study.specification import Study, Unit

STOPPED, FAILED = 3, 5  # exit codes

INTRODUCTION = (
    "Each rule learns for {episodes}, {times}, with the same luck as the others. "
    "Its regret is what its policies lost to the optimal one, summed over all episodes: less is better."
)

LEGEND = {
    "seeds": "seeds: runs of the rule so far",
    "regret": "regret: with its standard error",
    "minus first": "minus first: the paired difference, with its 95% interval",
    "gap": "gap: of the last round",
    "optim.": "optim.: how often the promise covered the optimum",
    "width": "width: how far it lay above",
    "to": "to {epsilon:g}: episodes until the average regret was below for good",
    "sec": "sec: seconds of a run",
    "guarantee": "guarantee: what is proved of optimism",
}


def compare(options: argparse.Namespace, console: Console) -> int:
    """``homdp compare``: several rules in several models, in a directory."""
    asked = _study(options)
    worlds = find_worlds(asked)  # what cannot be is told before anything else
    units = asked.units([text for text, world in worlds.items() if isinstance(world, ContinuousWorld)])
    out = Path(options.out) if options.out else Path("studies") / _name(asked)
    times = "once" if asked.seeds == 1 else f"{asked.seeds} times"
    say(console, INTRODUCTION.format(episodes=counted(asked.episodes, "episode"), times=times))
    with _resumable(out), _progress(_left(out, units), asked.episodes) as told, _client(options) as client:
        done = study.compare(asked, out=out, workers=options.workers, client=client, time_limit=options.time_limit, report=told)
    return _finish(done, console)


def resume(options: argparse.Namespace, console: Console) -> int:
    """``homdp resume``: go on with a study."""
    out = Path(options.directory)
    found = study.StudyDirectory.open(out)
    with _resumable(out), _progress(_left(out, found.units()), found.study.episodes) as told, _client(options) as client:
        done = study.resume(out, workers=options.workers, client=client, time_limit=options.time_limit, report=told)
    return _finish(done, console)


def report(options: argparse.Namespace, console: Console) -> int:
    """``homdp report``: the tables and the page again, from the journals."""
    directory = study.StudyDirectory.open(options.directory)
    runs = study.read_runs(directory)
    _tables(directory, runs, console)
    write_results(directory, runs)
    say(console, f"results: {directory.path / 'results.nc'}")
    with _busy("drawing report.html"):
        page = write_page(directory, runs)
    say(console, f"report:  {page}")
    return 0


def _finish(done: Finished, console: Console) -> int:
    _tables(done.directory, done.runs, console)
    for unit, reason in done.failed.items():
        say(console, f"not done: {unit.name}: {reason}")
    if done.stopped:
        say(console, f"Stopped, {done.stopped}. {_go_on(done.directory.path)}")
        return STOPPED
    say(console, f"results: {done.directory.path / 'results.nc'} (xarray.open_dataset reads it)")
    with _busy("drawing report.html"):
        page = write_page(done.directory, done.runs, done.failed)
    say(console, f"report:  {page} (open it in a browser)")
    return FAILED if done.failed else 0


def _tables(directory: study.StudyDirectory, runs: Runs, console: Console) -> None:
    shown: set[str] = set()
    for model in directory.study.models:
        of_model = {rule: several for (name, prior, rule), several in runs.items() if (name, prior) == (model, "declared")}
        if of_model:
            first, epsilon = next(iter(of_model.values()))[0], directory.study.epsilon
            most = directory.study.seeds
            begun = max(len(several) for several in of_model.values())
            seeds = counted(most, "seed") if begun == most else f"{begun} of {counted(most, 'seed')}"
            title = f"{model}: {counted(directory.study.episodes, 'episode')}, {seeds}, {best(first)}"
            table = comparison_table(study.summarise(of_model, epsilon), title, epsilon, console.width)
            shown |= {"to" if str(column.header).startswith("to ") else str(column.header) for column in table.columns}
            console.print(table)
    if runs:
        _explain(console, shown, directory.study.epsilon)
    others = [prior for prior in dict.fromkeys(prior for _, prior, _ in runs) if prior != "declared"]
    if others:
        say(console, f"These are runs under the declared prior; those under others ({', '.join(others)}) are in the report.")


def _explain(console: Console, shown: Collection[str], epsilon: float) -> None:
    """What the columns mean that are there, and which had no room."""
    say(console, "; ".join(words for head, words in LEGEND.items() if head in shown).format(epsilon=epsilon) + ".")
    missing = [head for head in ("optim.", "width", "sec", "guarantee") if head not in shown]
    if missing:
        say(console, f"No room here for {', '.join(missing)}: a wider window shows more, the report all.")


def _study(options: argparse.Namespace) -> Study:
    """What is asked for: by a file, by options, or by a file and options that replace what it says."""
    given: dict[str, Any] = {}
    texts = list(options.models)
    files = [text for text in texts if text.lower().endswith(".toml")]
    if files:
        if len(texts) > 1:
            raise ParameterError("compare", [Problem("MODEL", " ".join(texts), "one study.toml, or models")])
        given = Study.from_toml(files[0]).to_json()
    else:
        given["models"] = texts
    for name in ("episodes", "seeds", "planner", "horizon", "epsilon", "block"):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    if options.explorers:
        given["explorers"] = split_calls(options.explorers)
    if options.priors:
        given["priors"] = split_calls(options.priors)
    return Study.from_mapping(given, "compare")


def split_calls(texts: Sequence[str]) -> list[str]:
    """Names with options, from a list whose commas stand between names and between options.

    Examples
    --------
    >>> split_calls(["greedy,hop_b:scale=0.1,delta=0.05", "tight"])
    ['greedy', 'hop_b:scale=0.1,delta=0.05', 'tight']
    """
    calls: list[str] = []
    for text in texts:
        begun = False
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            if begun and "=" in part and ":" not in part.split("=")[0]:
                calls[-1] += f",{part}"
            else:
                calls.append(part)
            begun = True
    return calls


def _name(asked: Study) -> str:
    """A directory of its own for each study: the same command goes on with the same one."""
    number = sha256(json.dumps(asked.to_json(), sort_keys=True).encode()).hexdigest()[:6]
    return f"{'-'.join(slug(model).partition('-')[0] for model in asked.models)[:60]}-{number}"


def _left(out: Path, units: Iterable[Unit]) -> list[Unit]:
    """The units that are not done yet."""
    if not (out / "study.json").exists():
        return list(units)
    directory = study.StudyDirectory.open(out)
    return [unit for unit in units if not is_complete(directory, unit)]


@contextmanager
def _resumable(out: str | Path) -> Iterator[None]:
    """Say how to go on when somebody does not even wait for the end of an episode."""
    try:
        yield
    except KeyboardInterrupt:
        say(Console(stderr=True), _go_on(out))
        raise


def _go_on(out: str | Path) -> str:
    return f"Go on with:  homdp resume {shlex.quote(str(out))}"


@contextmanager
def _progress(units: Sequence[Unit], episodes: int) -> Iterator[Any]:
    """A bar with the rate and the remaining time on a terminal; elsewhere, in a log say, a line for each unit that is done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(units, episodes, console)
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("episodes", total=episodes * sum(len(unit.seeds) for unit in units))

        def told(unit: Unit, n: int) -> None:
            bar.update(task, advance=n, description=unit.rule)

        yield told


def _lines(units: Sequence[Unit], episodes: int, console: Console) -> Callable[[Unit, int], None]:
    written = Counter[Unit]()

    def told(unit: Unit, n: int) -> None:
        before, whole = written[unit], episodes * len(unit.seeds)
        written[unit] += n
        if before < whole <= written[unit]:
            done = sum(written[one] >= episodes * len(one.seeds) for one in written)
            say(console, f"{done} of {len(units)} done: {unit.name}")

    return told


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """Say what takes its time, on a terminal."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else nullcontext():
        yield


class _Rate(TextColumn):
    """Episodes a second."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Any) -> Any:
        """The rate, once there is one."""
        return super().render(task).append("" if task.speed is None else f"{task.speed:,.0f}/s")


@contextmanager
def _client(options: argparse.Namespace) -> Iterator[Any]:
    """The cluster's client, if a scheduler is named."""
    if options.scheduler is None:
        yield None
        return
    try:
        from homdp_ppl.study.cluster import connect
    except ImportError:
        remedy = "pip install 'homdp_ppl[dask]'"
        raise ParameterError("compare", [Problem("--scheduler", "no dask.distributed", "dask installed", remedy)]) from None
    with connect(options.scheduler) as client:
        if not client.nthreads():  # type: ignore[no-untyped-call]
            say(Console(stderr=True), f"No workers yet, waiting. Start some:  dask worker {options.scheduler} --nthreads 1")
        yield client
