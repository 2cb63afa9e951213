"""The commands for studies: ``compare``, ``resume`` and ``report``."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homdp_ppl import study
from homdp_ppl.cli.commands import best, explain_columns, explain_mark, left_out
from homdp_ppl.cli.console import say, warn
from homdp_ppl.cli.options import split_calls
from homdp_ppl.cli.progress import StudyProgress, busy
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.report import comparison_table, differences_table
from homdp_ppl.report.formatting import counted
from homdp_ppl.report.page import write_page
from homdp_ppl.report.page.progress import complete_runs, missing, of_model
from homdp_ppl.storage.whole_journal import read_journal
from homdp_ppl.study.differences import COVERS
from homdp_ppl.study.directory import slug
from homdp_ppl.study.reading import Runs, is_complete
from homdp_ppl.study.results import write_results
from homdp_ppl.study.reveals import with_share
from homdp_ppl.study.running import Finished, find_worlds
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.trust import user_files

if TYPE_CHECKING:
    from rich.console import Console

STOPPED, FAILED = 3, 5  # exit codes

INTRODUCTION = (
    "Running each rule {times} for {episodes}. All rules use the same random numbers. "
    "Lower regret is better."
)
DIFFERENCES = (
    "Pairs are bold if p (Holm) is at most 0.05: the sign-flip test with Holm's correction for all "
    "pairs of rules of a model."
)
LISTED = 3  # units that are listed; the rest are counted
NOTHING = "No results were saved: the first ones need more time"


def compare(options: argparse.Namespace, console: Console) -> int:
    """``homdp compare``: run a study and save it in a directory."""
    asked = _study(options)
    out = Path(options.out) if options.out else Path("studies") / _name(asked)
    begun = study.StudyDirectory.at_place(out, asked)
    worlds = find_worlds(asked)  # invalid studies raise before anything runs
    units = asked.units([text for text, world in worlds.items() if not world.spaces.finite])
    times = "once" if asked.seeds == 1 else f"{asked.seeds} times"
    before = _sizes(out)
    with _resumable(out, asked), _client(options) as client:
        say(console, INTRODUCTION.format(episodes=counted(asked.episodes, "episode"), times=times))
        with StudyProgress(_left(begun, units), asked.episodes) as progress:
            work = {
                "workers": options.workers,
                "client": client,
                "time_limit": options.time_limit,
                "report": progress,
            }
            done = study.compare(asked, out=out, **work)
    return _finish(done, console, _further(out, before))


def resume(options: argparse.Namespace, console: Console) -> int:
    """``homdp resume``: resume a study."""
    out = Path(options.directory)
    trust = options.files or options.trust
    found = study.StudyDirectory.open(out, trust)
    left, before = _left(found, found.units()), _sizes(out)
    with (
        _resumable(out, found.study),
        _client(options) as client,
        StudyProgress(left, found.study.episodes) as progress,
    ):
        done = study.resume(
            out,
            workers=options.workers,
            client=client,
            time_limit=options.time_limit,
            report=progress,
            trust=trust,
            take_over=options.take_over,
        )
    if not left:
        say(console, "All runs are already complete.")
    return _finish(done, console, _further(out, before))


def report(options: argparse.Namespace, console: Console) -> int:
    """``homdp report``: recreate the tables and the page from the journals, without user files."""
    directory = study.StudyDirectory.open(options.directory)
    runs = study.read_runs(directory)
    _tables(directory, runs, console)
    if _missing(directory, runs, {}, console):
        say(console, _how_to_resume(directory.path))  # only the user may list user files
        if user_files(directory.study):
            say(console, "The study has user files: list them after DIR, or use --trust.")
    write_results(directory, runs)
    with busy("drawing report.html"):
        page = write_page(directory, runs)
    _say_files(directory, page, console)
    return 0


def _finish(done: Finished, console: Console, further: bool) -> int:
    _tables(done.directory, done.runs, console)
    _missing(done.directory, done.runs, done.failed, console)
    if done.stopped:
        saved = "Saved results are intact." if further else f"{NOTHING}."
        how = _how_to_resume(done.directory.path, user_files(done.directory.study).values())
        say(console, f"Stopped because {done.stopped}. {saved} {how}")
        return STOPPED
    with busy("drawing report.html"):
        page = write_page(done.directory, done.runs, done.failed)
    _say_files(done.directory, page, console)
    return FAILED if done.failed else 0


def _say_files(directory: study.StudyDirectory, page: Path, console: Console) -> None:
    say(console, f"Results: {directory.path / 'results.nc'} (read with xarray.open_dataset)")
    say(console, f"Report:  {page} (open in a browser)")


def _tables(directory: study.StudyDirectory, runs: Runs, console: Console) -> None:
    """Print one table of complete runs per model, all with the same columns."""
    most, epsilon = directory.study.seeds, directory.study.epsilon
    ended = {model: complete_runs(of_model(runs, model)) for model in directory.study.models}
    found = [
        (model, next(iter(rules.values()))[0], rules) for model, rules in ended.items() if rules
    ]
    rows = [study.summarise(rules, epsilon) for _, _, rules in found]
    without: set[str] = set()
    for several in rows:
        without |= left_out(several, comparison_table(several, "", epsilon, console.width), epsilon)
    tables = []
    for (model, first, rules), several in zip(found, rows, strict=True):
        begun = max(map(len, rules.values()))
        seeds = counted(most, "seed") if begun == most else f"{begun} of {counted(most, 'seed')}"
        title = f"{model}: {counted(directory.study.episodes, 'episode')}, {seeds}, {best(first)}"
        tables.append(comparison_table(several, title, epsilon, console.width, without))
        console.print(tables[-1])
    if tables:
        explain_columns(console, tables, without, epsilon)
        explain_mark(console, [row for several in rows for row in several])
        _differences(
            {model: study.pairwise_differences(rules) for model, _, rules in found}, console
        )
    others = [
        prior for prior in dict.fromkeys(prior for _, prior, _ in runs) if prior != "declared"
    ]
    if tables and others:
        say(
            console,
            (
                "The tables show the runs under the declared prior. For other priors "
                f"({', '.join(others)}), see the report."
            ),
        )


def _differences(found: Mapping[str, Sequence[study.Difference]], console: Console) -> None:
    """Print the differences of all pairs of rules, for models with at least two pairs."""
    several = {model: pairs for model, pairs in found.items() if len(pairs) > 1}
    for model, pairs in several.items():
        console.print(differences_table(pairs, f"{model}: all pairs of rules"))
    if several:
        say(console, DIFFERENCES)
    if any(one.seeds > 1 for pairs in found.values() for one in pairs):
        say(console, f"{COVERS}\n")


def _missing(
    directory: study.StudyDirectory, runs: Runs, failed: Mapping[Unit, str], console: Console
) -> bool:
    """List the units that failed or are not complete; returns whether there are any."""
    starts = tuple(f"{unit.name}: " for unit in failed)
    rest = [line for line in missing(directory, runs, {}) if not line.startswith(starts)]
    _list("Failed", [f"{unit.name}:\n    {reason}" for unit, reason in failed.items()], console)
    _list("Not complete", rest, console)
    return bool(failed or rest)


def _list(title: str, lines: Sequence[str], console: Console) -> None:
    """Print the first lines of a list of units, and how many more there are."""
    if lines:
        say(console, f"{title} ({counted(len(lines), 'unit')} of work):")
    for line in lines[:LISTED]:
        say(console, f"  {line}")
    if len(lines) > LISTED:
        say(console, f"  ... and {len(lines) - LISTED} more")


def _study(options: argparse.Namespace) -> Study:
    """The study defined by options, by a file, or by a file with options that override it."""
    given: dict[str, Any] = {}
    texts = list(options.models)
    files = [text for text in texts if text.lower().endswith(".toml")]
    if files:
        if len(texts) > 1:
            raise ParameterError(
                "compare", [Problem("MODEL", " ".join(texts), "one study file, or only models")]
            )
        given = Study.from_toml(files[0]).to_json()
    else:
        given["models"] = texts
    for name in ("episodes", "seeds", "planner", "horizon", "epsilon", "block"):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    if options.explorers:
        given["explorers"] = split_calls(options.explorers)
    if options.reveal:
        rules = given.get("explorers", Study.explorers)
        given["explorers"] = [with_share(r, p) for r in rules for p in options.reveal]
    if options.priors:
        given["priors"] = split_calls(options.priors)
    return Study.from_mapping(given, "compare")


def _name(asked: Study) -> str:
    """The default directory of a study: repeating a command resumes its study."""
    number = sha256(json.dumps(asked.to_json(), sort_keys=True).encode()).hexdigest()[:6]
    return f"{'-'.join(slug(model).partition('-')[0] for model in asked.models)[:60]}-{number}"


def _sizes(out: Path) -> dict[Path, int]:
    """The sizes of the journals, in bytes."""
    return {path: path.lstat().st_size for path in out.rglob("*.journal")}


def _further(out: Path, before: Mapping[Path, int]) -> bool:
    """Whether a round was written since then; a journal may have been created without rounds."""
    grown = [path for path, size in _sizes(out).items() if size > before.get(path, 0)]
    return any(path in before or read_journal(path).blocks for path in grown)


def _left(begun: study.StudyDirectory | None, units: Iterable[Unit]) -> list[Unit]:
    """The units that are not complete yet."""
    return [unit for unit in units if begun is None or not is_complete(begun, unit)]


@contextmanager
def _resumable(out: Path, asked: Study) -> Iterator[None]:
    """Add to an interrupt how to resume the study."""
    try:
        yield
    except KeyboardInterrupt:
        how = _how_to_resume(out, user_files(asked).values())
        raise KeyboardInterrupt("Saved results are intact.", how) from None


def _how_to_resume(out: Path, files: Iterable[Path] = ()) -> str:
    words = map(str, dict.fromkeys((out, *files)))
    return f"To resume: homdp resume {shlex.join(words)}"


@contextmanager
def _client(options: argparse.Namespace) -> Iterator[Any]:
    """A client of the Dask scheduler, if one is given."""
    if options.scheduler is None:
        yield None
        return
    try:
        from homdp_ppl.study.cluster import connect
    except ImportError:
        remedy = "Install it: pip install 'homdp_ppl[dask]'."
        raise ParameterError(
            "compare",
            [Problem("--scheduler", "no dask.distributed", "Dask to be installed", remedy)],
        ) from None
    with connect(options.scheduler) as client:
        if not client.nthreads():  # type: ignore[no-untyped-call]
            warn(f"Waiting for workers. To start one: dask worker {options.scheduler} --nthreads 1")
        yield client
