"""Exploration rules on the same problems with the same random numbers: regret and guarantees.

    python benchmarks/exploration.py [--problems NAME ...] [--rules NAME ...]
                                     [--episodes 500 2000 10000] [--seeds 5]
                                     [--out FILE.jsonl]
    python benchmarks/exploration.py --cost [--problems NAME ...]

For every problem and rule: the mean regret, its ratio to that of `tight` (seed by seed, then the
mean), the share of optimistic rounds, the last optimistic value minus the optimum (excess), the
last gap, the gap of the best policy in the model of relative frequencies with the same data
(greedy), and the width of the certificate of the last policy (upper bound of the optimum minus
lower bound of the value). With several numbers of episodes, rules that do not use the number run
once, and the figures are those of the first episodes. In flat tables every row is unknown. The
rules of the ablation are `anytime` without one of its parts.

With `--cost`: processor time per episode in the compiled loop, `anytime` next to `quantile_backup`,
in turns, and the smallest of several runs of each.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from homdp_ppl import evaluate, explorers, learn, models
from homdp_ppl.confidence import Ranges, confidence_sets, empirical, value_ranges
from homdp_ppl.confidence.parameter_rows import row_map
from homdp_ppl.confidence.policies import policy_interval
from homdp_ppl.core.optimism import Limits
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.explorers.anytime import optimistic_proposal
from homdp_ppl.learning.planning import TablePlanning
from homdp_ppl.models.flat import flat_table
from homdp_ppl.planners import history_tree
from homdp_ppl.precision import namespace


def carried_screening():
    """Screening for a declaration that carries the last test in the state, with 18 states."""
    sys.path.append(str(Path(__file__).parents[1]))
    return import_module("tests.hand_encoded").screening(horizon=4, hierarchy=False)


STRUCTURED = {
    "lock": lambda: models.load("lock"),
    "tiger": lambda: models.load("tiger"),
    "tiger_listen": lambda: models.load("tiger_listen", horizon=4),
    "screening": lambda: models.load("screening", horizon=4, hierarchy=False),
    "carried_screening": carried_screening,
    "checkup": lambda: models.load("checkup", horizon=4),
    "meta_learning": lambda: models.load("meta_learning", horizon=4),
}
FLAT = {
    "tiger_table": lambda: models.load("tiger_table"),
    "lock_table": lambda: models.load("lock_table"),
    "meta_learning_table": lambda: models.load("meta_learning_table", horizon=4),
    "imitation_table": lambda: models.load("imitation_table", horizon=4),
    "sim_to_real_table": lambda: models.load("sim_to_real_table", horizon=3),
    "tiger_listen_table": lambda: flat_table(models.load("tiger_listen", horizon=4)),
    "short_lock_table": lambda: models.load("lock_table", length=2, dials=3),
    "random_0": lambda: models.load("random", states=4, seed=0),
    "random_1": lambda: models.load("random", states=4, seed=1),
    "random_2": lambda: models.load("random", states=4, seed=2),
}
PROBLEMS = {**STRUCTURED, **FLAT}


def with_trivial_ranges(key, state):
    """Propose with values between 0 and the number of steps left."""
    sets = confidence_sets(state.homdp, state.counts)
    known = value_ranges(sets)
    left = np.arange(state.homdp.horizon, 0, -1.0)
    trivial = {
        name: 0 * part + (name.startswith("high") * left).reshape(-1, *(1,) * (part.ndim - 1))
        for name, part in known._asdict().items()
    }
    return optimistic_proposal(sets, Ranges(**trivial))


def with_hoeffding_sets(key, state):
    """Propose with Hoeffding's radius at all numbers of visits, instead of confidence sequences."""
    homdp, sets = state.homdp, confidence_sets(state.homdp, state.counts)
    rows = row_map(homdp)
    n = rows.visits(rows.pooled(state.counts))
    xp = namespace(n)
    cells = rows.intervals * state.episodes * homdp.horizon
    radius = xp.where(n > 0, xp.sqrt(np.log(2 * cells / 0.1) / 2 / xp.maximum(n, 1)), 1.0)
    initial, *tables = rows.tables(xp.minimum(radius, 1.0), known=False)
    full = initial, *homdp.form.full(*tables)
    centre = sets.centre[:3]
    up = Tables(*(xp.minimum(eps, 1 - p) for eps, p in zip(full, centre, strict=True)))
    down = Tables(*(xp.minimum(eps, p) for eps, p in zip(full, centre, strict=True)))
    wider = sets._replace(up=up, down=down)
    return optimistic_proposal(wider, value_ranges(wider))


def plain_root(homdp):
    """The root value without what values are known to miss."""
    return plain_value


def plain_value(terms, solution):
    """The smaller of the two simple bounds."""
    xp = namespace(terms, solution.upper)
    return xp.minimum(solution.upper + terms.offset, terms.most)


def only_caps(terms, horizon):
    """Caps of states and actions only."""
    return Limits(terms.limits.caps)


def variant(name, **changes):
    """The anytime rule with a part replaced."""
    rule = explorers.anytime()
    objective = {key: changes.pop(key) for key in ("caps", "root") if key in changes}
    return replace(
        rule,
        about=replace(rule.about, name=name),
        objective=replace(rule.objective, **objective),
        **changes,
    )


ABLATION = {
    "without deficits": lambda: variant("no_deficits", caps=only_caps, root=plain_root),
    "without deficits and caps": lambda: variant("no_caps", caps=None, root=plain_root),
    "trivial ranges": lambda: variant("trivial_ranges", propose=with_trivial_ranges),
    "Hoeffding sets": lambda: variant("hoeffding", propose=with_hoeffding_sets),
    "replanning on doubling": lambda: explorers.replan_on_doubling(explorers.anytime()),
}
RULES = {
    "tight": explorers.tight,
    "anytime": explorers.anytime,
    "anytime, declared mixture": lambda: explorers.anytime(mixture="declared"),
    "quantile_backup": explorers.quantile_backup,
    "posterior_sampling": explorers.posterior_sampling,
    "greedy": explorers.greedy,
    **ABLATION,
}
DEFAULT = ["tight", "anytime", "quantile_backup", "posterior_sampling", "greedy"]


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--rules", nargs="*", choices=RULES, default=DEFAULT)
    parser.add_argument("--episodes", type=int, nargs="+", default=[2000])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="append one JSON line per problem and rule")
    parser.add_argument("--cost", action="store_true", help="measure time instead")
    options = parser.parse_args()
    if options.cost:
        for problem in options.problems:
            show_cost(problem)
        return
    rows = []
    for problem in options.problems:
        world, regrets = PROBLEMS[problem](), {}
        for rule in options.rules:
            for row in measure(world, RULES[rule](), options.episodes, options.seeds):
                key, lost = row["episodes"], row.pop("lost")
                if rule == "tight":
                    regrets[key] = lost
                row["ratio"] = (lost / regrets[key]).mean() if key in regrets else np.nan
                rows.append({"problem": problem, "rule": rule, **row})
                if options.out:
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
    for episodes in options.episodes:
        show([row for row in rows if row["episodes"] == episodes], episodes)


def measure(world, rule, marks, seeds):
    """The figures of one rule in one world after each number of episodes."""
    at_once = not rule.about.needs_episodes  # one run, of which the others are the beginnings
    rows = []
    for episodes in [max(marks)] if at_once else marks:
        start = time.perf_counter()
        runs = learn(world, rule, history_tree(), episodes, list(range(seeds)), progress=False)
        seconds = (time.perf_counter() - start) / (seeds * episodes)
        for mark in sorted(marks) if at_once else [episodes]:
            figures = summarised(runs, mark)
            rows.append({"episodes": mark, **figures, "milliseconds": 1000 * seconds})
    return rows


def summarised(runs, mark):
    """The figures of runs after the first episodes."""
    lost = np.array([run.regret[mark - 1] for run in runs])
    widths = [certificate_width(run, mark) for run in runs]
    return {
        "lost": lost,
        "regret": lost.mean(),
        "error": lost.std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else np.nan,
        "optimistic": float(np.mean([run.was_optimistic[:mark].mean() for run in runs])),
        "excess": float(np.mean([run.optimistic[mark - 1] - run.optimum for run in runs])),
        "gap": float(np.mean([run.gaps[mark - 1] for run in runs])),
        "worst_gap": float(np.max([run.gaps[mark - 1] for run in runs])),
        "gaps": [float(run.gaps[mark - 1]) for run in runs],
        "greedy_gaps": [greedy_gap(run, mark) for run in runs],
        "certificate": float(np.mean(widths)),
    }


def greedy_gap(run, mark):
    """The gap of the best policy in the model of relative frequencies, with the data until then."""
    model = run.task.model
    plan = history_tree()(empirical(model, model.counts(run.episodes[:mark])))
    return float(run.optimum - evaluate(plan.policy, run.task.world.pomdp))


def certificate_width(run, mark):
    """The certified gap of the policy of an episode, with the data of the run until then."""
    model = run.task.model
    policy = run.policy if mark == len(run.values) else run.policy_at(mark - 1)
    sets = confidence_sets(model, model.counts(run.episodes[:mark]))
    planning = TablePlanning(explorers.anytime(), history_tree(), model)
    return (
        planning.plan(optimistic_proposal(sets, value_ranges(sets))).optimistic
        - policy_interval(sets, policy).low
    )


def show(rows, episodes):
    """Print a table, and the geometric means of the ratios on flat tables."""
    columns = ("regret", "error", "ratio", "optimistic", "excess", "gap", "greedy", "certificate")
    table = Table("problem", "rule", *columns, "ms per episode", title=f"{episodes:,} episodes")
    for row in rows:
        row["greedy"] = np.mean(row["greedy_gaps"])
        numbers = [f"{row[name]:.3g}" for name in (*columns, "milliseconds")]
        table.add_row(row["problem"], row["rule"], *numbers)
    console = Console()
    console.print(table)
    for rule in dict.fromkeys(row["rule"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["rule"] == rule and row["problem"] in FLAT]
        if ratios and np.isfinite(ratios).all():
            mean = np.exp(np.mean(np.log(np.maximum(ratios, 1e-9))))
            console.print(
                f"{rule}: geometric mean of ratios on {len(ratios)} flat tables {mean:.3f}"
            )


def show_cost(problem, episodes=2000, turns=5):
    """Print the processor time per episode of two rules; the first turn compiles."""
    world, rules = PROBLEMS[problem](), (explorers.anytime(), explorers.quantile_backup())
    spent = np.empty((turns, len(rules)))
    for turn, place in np.ndindex(spent.shape):
        start = time.process_time()
        learn(world, rules[place], history_tree(), episodes, turn, compiled=True, progress=False)
        spent[turn, place] = 1e6 * (time.process_time() - start) / episodes
    anytime, other = spent[1:].min(0)
    print(
        f"{problem}: anytime {anytime:.0f} microseconds per episode, quantile_backup {other:.0f}; "
        f"ratio {anytime / other:.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
