"""The overhead of parallel studies: time per unit, and two workers against one.

    python benchmarks/studies.py [--episodes 100000] [--units 20 220] [--part NAME ...]

Parts: overhead (empty units with one loky process and one Dask worker; the time per unit is the
slope between two numbers of units, and the rest is the start-up time), scaling (a study with one
and two workers). All workers have one thread, Dask workers are already running, and all results
must have the same digest.
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
        "--episodes", type=int, default=100000, help="episodes per run of the scaling study"
    )
    parser.add_argument(
        "--units", type=int, nargs=2, default=(20, 220), help="two numbers of empty units"
    )
    parser.add_argument(
        "--part",
        nargs="*",
        choices=sorted(PARTS),
        default=sorted(PARTS),
        help="what to measure (default: everything)",
    )
    options = parser.parse_args()
    console = Console()
    console.print(f"load before: {os.getloadavg()[0]:.1f}, cores: {len(os.sched_getaffinity(0))}")
    for part in options.part:
        PARTS[part](console, options)


def seconds(study, run):
    """The running time of a study, and its digest."""
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
    """An executor with a number of loky processes."""
    return lambda directory, units: run_processes(directory, units, workers, Pace(), ignore)


@contextmanager
def dask(workers):
    """An executor with a number of running Dask workers."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        client.run(_import)
        yield lambda directory, units: run_cluster(directory, units, client, Pace(), ignore)


def _import():
    """Import the library in a worker, as on a cluster in use; worlds cannot be pickled."""
    find_world("tiger")


def processor_seconds():
    """Processor time of all workers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ignore(unit, rounds):
    """Show no progress."""


def overhead(console, options):
    """Measure the overhead of empty units."""
    few, many = (
        Study(("tiger",), ("greedy",), seeds=units, priors=("declared",), block=1)
        for units in options.units
    )
    sizes = (f"{units} units s" for units in options.units)
    table = Table("executor", *sizes, "ms per unit", "start-up s")
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
    console.print("Overhead per unit, one worker")
    console.print(table)


def scaling(console, options):
    """Compare two workers with one."""
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
    table = Table("executor", "1 worker s", "2 workers s", "speed-up")
    found = set()
    for name, by in (("loky", lambda workers: nullcontext(processes(workers))), ("Dask", dask)):
        taken = []
        for workers in (1, 2):
            before = processor_seconds()
            with by(workers) as run:
                time_taken, result = seconds(study, run)
            taken.append(time_taken)
            found.add(result)
            # Two workers use more than one, because both start and compile.
            used = processor_seconds() - before
            console.print(
                f"  {name}, {workers}: {time_taken:.1f} s, {used:.0f} s of processor time, load "
                f"{os.getloadavg()[0]:.1f}"
            )
        table.add_row(name, *(f"{one:.1f}" for one in taken), f"{taken[0] / taken[1]:.2f}")
    if len(found) > 1:
        raise SystemExit("different digests")
    console.print(table)


PARTS = {"overhead": overhead, "scaling": scaling}

if __name__ == "__main__":
    main()
