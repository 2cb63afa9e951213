"""What it costs to let others do the work: seconds a unit, and one worker against two.

    python benchmarks/studies.py [--episodes 100000] [--units 20 220] [--part NAME ...]

Parts: overhead (units in which nothing is done, by one process of loky and by one Dask worker:
milliseconds a unit is the slope between two numbers of units, the rest is what it costs to begin),
scaling (a study with one and two workers). All workers have one thread, Dask's are there already,
and every way must give the same digest.
"""

import argparse
import os
import resource
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("PJRT_NPROC", "1")  # before JAX is imported; workers inherit it

from distributed import Client, LocalCluster
from rich.console import Console
from rich.table import Table

from homdp_ppl.study import Study, StudyDirectory, cluster, digest, executors, find_world
from homdp_ppl.study.cluster import run_cluster
from homdp_ppl.study.executors import run_processes
from homdp_ppl.study.pace import Pace


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--episodes", type=int, default=100000, help="of each run of the larger study"
    )
    parser.add_argument(
        "--units", type=int, nargs=2, default=(20, 220), help="in which nothing is done"
    )
    parser.add_argument(
        "--part",
        nargs="*",
        choices=sorted(PARTS),
        default=sorted(PARTS),
        help="what to measure (default everything)",
    )
    options = parser.parse_args()
    console = Console()
    console.print(
        f"load of this machine before: {os.getloadavg()[0]:.1f}, cores: "
        f"{len(os.sched_getaffinity(0))}"
    )
    for part in options.part:
        PARTS[part](console, options)


def seconds(study, run):
    """How long a study takes, and its digest."""
    with tempfile.TemporaryDirectory() as out:
        directory = StudyDirectory.create(
            Path(out), study, {text: find_world(text, study.horizon) for text in study.models}
        )
        begun = time.perf_counter()
        outcomes = run(directory, list(study.units()))
        taken = time.perf_counter() - begun
        if outcomes.failed or outcomes.stopped:
            raise SystemExit(str(outcomes))
        return taken, digest(directory)


def processes(workers):
    """So many processes, by loky."""
    return lambda directory, units: run_processes(directory, units, workers, Pace(), ignore)


@contextmanager
def dask(workers):
    """So many Dask workers, which are there already."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        client.run(find_world, "tiger")  # imported, as on a cluster that has done something before
        yield lambda directory, units: run_cluster(directory, units, client, Pace(), ignore)


def processor_seconds():
    """Of all workers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ignore(unit, rounds):
    """No progress is shown."""


def overhead(console, options):
    """Empty units."""
    few, many = (
        Study(("tiger",), ("greedy",), seeds=units, priors=("declared",), block=1)
        for units in options.units
    )
    table = Table("by", *(f"{units} units s" for units in options.units), "ms a unit", "to begin s")
    idle = (
        patch.object(executors, "_work_elsewhere", lambda path, unit: ""),
        patch.object(cluster, "compute", lambda *unit: []),
    )
    with idle[0], idle[1], dask(1) as one:
        for name, run in (("loky", processes(1)), ("Dask", one)):
            short, long = seconds(few, run)[0], seconds(many, run)[0]
            slope = (long - short) / (options.units[1] - options.units[0])
            begin = short - options.units[0] * slope
            table.add_row(name, f"{short:.2f}", f"{long:.2f}", f"{1e3 * slope:.1f}", f"{begin:.1f}")
    console.print("Overhead of a unit, one worker")
    console.print(table)


def scaling(console, options):
    """One worker and two."""
    study = Study(
        ("tiger_table",),
        ("quantile_backup", "tight"),
        options.episodes,
        seeds=4,
        priors=("declared",),
        block=1,
    )
    console.print(
        f"Scaling: {len(list(study.units()))} units, {options.episodes:,} episodes of "
        f"tiger_table each"
    )
    table = Table("by", "1 worker s", "2 workers s", "times faster")
    found = set()
    for name, by in (("loky", lambda workers: nullcontext(processes(workers))), ("Dask", dask)):
        taken = []
        for workers in (1, 2):
            before = processor_seconds()
            with by(workers) as run:
                time_taken, told = seconds(study, run)
            taken.append(time_taken)
            found.add(told)
            used = (
                processor_seconds() - before
            )  # more than with one worker: for starting and compiling twice
            console.print(
                f"  {name}, {workers}: {time_taken:.1f} s, {used:.0f} s of processors, load "
                f"{os.getloadavg()[0]:.1f}"
            )
        table.add_row(name, *(f"{one:.1f}" for one in taken), f"{taken[0] / taken[1]:.2f}")
    if len(found) > 1:
        raise SystemExit("different digests")
    console.print(table)


PARTS = {"overhead": overhead, "scaling": scaling}

if __name__ == "__main__":
    main()
