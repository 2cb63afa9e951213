"""The golden cases: functions that return named arrays, numbers and texts.

Shapes and locations that may change are handled in adapt.py, not here. ``CASES`` are in the default
suite, ``SLOW`` in `make test-slow`, where JAX optimises compiled code.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from homdp_ppl import (
    Kernels,
    explorers,
    homdp,
    learn,
    models,
    planners,
    posterior,
    read_pomdp,
    rollout,
    study,
    tabular,
    uniform_policy,
    write_pomdp,
)
from jax.nn import sigmoid

from tests.golden import adapt
from tests.golden.adapt import Arrays

Case = Callable[[], Arrays]
CASES: dict[str, Case] = {}
SLOW: dict[str, Case] = {}

TREE = planners.history_tree()  # one planner for all cases, so that compiled functions are reused


def case(name: str, slow: bool = False) -> Callable[[Case], Case]:
    """Add a case to the suite."""

    def add(function: Case) -> Case:
        assert name not in CASES | SLOW, name
        (SLOW if slow else CASES)[name] = function
        return function

    return add


def under(prefix: str, arrays: Mapping[str, Any]) -> Arrays:
    """The same arrays with a prefix before their names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


# Worlds

WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "tiger": ("tiger", {"horizon": 3}),
    "tiger_table": ("tiger_table", {"horizon": 3}),
    "lock": ("lock", {"length": 2, "dials": 2}),
    "screening": ("screening", {"hierarchy": False, "horizon": 3}),
    "checkup": ("checkup", {"horizon": 2}),
    "screening_hierarchy": ("screening", {"horizon": 2}),
}


@cache
def world(name: str) -> Any:
    """A small world, declared once."""
    if name == "sensor":
        return sensor().at(ear=1.3, drift=-0.4)
    model, options = WORLDS[name]
    return models.load(model, **options)


@cache
def sensor() -> Any:
    """A tiny program without a closed form."""

    @homdp(
        states=2, observations=2, actions=2, horizon=2, reward=np.array([[1.0, 0.2], [0.0, 0.7]])
    )
    def sensor():
        ear = numpyro.sample("ear", dist.Normal(1.0, 1.0))
        drift = numpyro.sample("drift", dist.Normal(-0.5, 0.8))
        hears, moves = sigmoid(ear), sigmoid(drift + jnp.array([0.0, 1.0]))
        T = jnp.stack(
            [jnp.stack([1 - moves, moves], -1), jnp.stack([moves / 2, 1 - moves / 2], -1)]
        )
        return Kernels([0.6, 0.4], T, jnp.array([[hears, 1 - hears], [1 - hears, hears]]))

    return sensor


@cache
def switch() -> Any:
    """A program with discrete sites only."""

    @homdp(states=2, observations=2, actions=2, horizon=3, reward=np.zeros((2, 2)))
    def switch():
        grade = numpyro.sample("grade", dist.Categorical(probs=np.array([0.5, 0.3, 0.2])))
        with numpyro.plate("actions", 2):
            slippery = numpyro.sample("slippery", dist.Bernoulli(np.array([0.3, 0.01])))
        p = jnp.array([0.6, 0.75, 0.9])[grade]
        slip = jnp.where(slippery == 1, 0.4, 0.1)
        moves = jnp.stack([jnp.stack([1 - slip, slip], -1)] * 2)
        return Kernels([0.5, 0.5], moves, jnp.array([[p, 1 - p], [1 - p, p]]))

    return switch


@cache
def members(name: str, count: int) -> tuple[Any, ...]:
    """A class of worlds: the truth, and others drawn from the prior."""
    truth = world(name)
    return (truth, *(truth.homdp.draw(adapt.key(100 + k)) for k in range(count - 1)))


RULES: dict[str, Callable[[str], Any]] = {
    "hop_b": lambda name: explorers.hop_b(),
    "hop_b_unknown": lambda name: explorers.hop_b(known=False),
    "hop_b_scaled": lambda name: explorers.hop_b(scale=0.1),
    "hop_b_class": lambda name: explorers.hop_b_class(members(name, 4)),
    "hop_v": lambda name: explorers.hop_v(members(name, 3), members(name, 4), delta=0.5),
    "hop_v_mass": lambda name: explorers.hop_v(members(name, 3), members(name, 4), mass=0.8),
    "anytime": lambda name: explorers.anytime(),
    "tight": lambda name: explorers.tight(),
    "quantile_bonus": lambda name: explorers.quantile_bonus(),
    "quantile_bonus_bound": lambda name: explorers.quantile_bonus(bound=True),
    "quantile_backup": lambda name: explorers.quantile_backup(1.645),
    "value_quantile": lambda name: explorers.value_quantile(draws=4),
    "posterior_sampling": lambda name: explorers.posterior_sampling(),
    "greedy": lambda name: explorers.greedy(),
    "epsilon_greedy": lambda name: explorers.epsilon_greedy(0.3),
    "uniform": lambda name: explorers.uniform(),
    "oracle": lambda name: explorers.oracle(world(name)),
}


@cache
def rule(name: str, which: str) -> Any:
    """A rule for a world, created once."""
    return RULES[which](name)


# 1. Runs in finite worlds


def finite_run(name: str, which: str, episodes: int, compiled: bool) -> Arrays:
    """One run, and the actions of two of its policies after short histories."""
    run = learn(world(name), rule(name, which), TREE, episodes, seed=3, compiled=compiled)
    found = adapt.record_of(run)
    k = len(found["values"]) // 2
    _, Y, A, H = adapt.sizes(world(name))
    found["policy_at"] = adapt.acts(run.policy_at(k), range(Y), range(A), min(H, 2))
    found["policy"] = adapt.acts(run.policy, range(Y), range(A), min(H, 2))
    return found


EPISODES = {"tiger": 18, "tiger_table": 18, "lock": 12, "screening": 9}
COMPILED = ("hop_b", "quantile_backup", "posterior_sampling", "value_quantile")  # by default
NEVER = ("hop_v", "hop_v_mass", "quantile_bonus")  # rules without a compiled loop
for _name, _episodes in EPISODES.items():
    for _which in RULES:
        _run = partial(finite_run, _name, _which, _episodes, False)
        case(f"learn/{_name}/{_which}")(_run)
        if _which not in NEVER:
            _quick = _name == "tiger" and _which in COMPILED
            _run = partial(finite_run, _name, _which, 40, True)
            case(f"learn_compiled/{_name}/{_which}", slow=not _quick)(_run)

BELIEVING = ("quantile_bonus", "quantile_backup", "value_quantile", "posterior_sampling")
for _which in BELIEVING:
    case(f"learn/sensor/{_which}", slow=True)(partial(finite_run, "sensor", _which, 5, False))
    case(f"learn/checkup/{_which}", slow=True)(partial(finite_run, "checkup", _which, 4, False))
case("learn/screening_hierarchy/posterior_sampling", slow=True)(
    partial(finite_run, "screening_hierarchy", "posterior_sampling", 4, False)
)


def seeds(compiled: bool) -> Arrays:
    """Runs of several seeds at once."""
    numbers = [0, 7, 123456789]
    runs = learn(
        world("tiger"), rule("tiger", "hop_b"), TREE, 15, numbers, compiled=compiled, progress=False
    )
    found: Arrays = {}
    for seed, run in zip(numbers, runs, strict=True):
        found |= under(f"seed {seed}", adapt.record_of(run))
    return found


case("learn/several seeds")(partial(seeds, False))
case("learn_compiled/several seeds")(partial(seeds, True))


def another_prior(which: str) -> Arrays:
    """A learner who does not know the structure."""
    flat = models.load("tiger_table", horizon=3).homdp
    run = learn(world("tiger"), RULES[which]("tiger"), TREE, 15, 2, model=flat, compiled=False)
    mean = run.posterior.mean
    return adapt.record_of(run) | under("mean", adapt.tables(mean))


for _which in ("posterior_sampling", "quantile_backup", "tight"):
    case(f"learn/another prior/{_which}")(partial(another_prior, _which))


def foresight(which: str) -> Arrays:
    """Data from a collector that sees the states."""
    run = learn(world("tiger"), rule("tiger", which), TREE, 15, 4, foresight=True)
    return adapt.record_of(run)


for _which in ("hop_b", "posterior_sampling"):
    case(f"learn/foresight/{_which}")(partial(foresight, _which))


def resumed(which: str, compiled: bool) -> Arrays:
    """A run that is stopped and resumed twice."""
    run = learn(world("tiger"), rule("tiger", which), TREE, 21, 5, stop_after=9, compiled=compiled)
    on = run.resume(15)
    return (
        under("stopped", adapt.record_of(run))
        | under("on", adapt.record_of(on))
        | under("end", adapt.record_of(on.resume()))
    )


for _which in ("hop_b", "hop_v", "posterior_sampling"):
    case(f"learn/resumed/{_which}")(partial(resumed, _which, False))
case("learn_compiled/resumed/posterior_sampling")(partial(resumed, "posterior_sampling", True))


@case("learn/replanning")
def replanning() -> Arrays:
    """Both replanning schedules, for rules with either default."""
    found: Arrays = {}
    for when in ("every episode", "doubled"):
        for made in (explorers.hop_b, explorers.posterior_sampling, explorers.greedy):
            run = learn(world("tiger"), adapt.replanning(made, when), TREE, 12, 6, compiled=False)
            found |= under(f"{made.__name__}, {when}", adapt.record_of(run))
    return found


@case("learn/other planners")
def other_planners() -> Arrays:
    """A rule that needs no optimistic backups, with planners other than the history tree."""
    found: Arrays = {}
    some: dict[str, Any] = {
        "alpha_vectors": planners.alpha_vectors(),
        "bounded_search": planners.bounded_search(),
        "auto": planners.auto(),
    }
    for name, planner in some.items():
        run = learn(world("tiger"), rule("tiger", "posterior_sampling"), planner, 8, 1)
        found |= under(name, adapt.record_of(run))
    return found


@case("learn/mixture")
def mixture() -> Arrays:
    """The mixture of all rounds, and one of its policies."""
    run = learn(world("tiger"), rule("tiger", "greedy"), TREE, 10, 8, compiled=False)
    drawn = run.mixture.draw(adapt.key(3))
    return {"value": run.mixture.value, "drawn": adapt.acts(drawn, range(2), range(3), 2)}


# 2. Runs in continuous worlds

NOISES = (0.4, 1.0, 2.5)
LOUD = np.array([-2.0, -0.4, 0.3, 1.7])


@cache
def hearing() -> tuple[Any, tuple[Any, ...]]:
    """The Gaussian tiger, and a class of worlds with other emission densities."""
    truth = models.load("gaussian_tiger", horizon=2)
    means = np.array([-1.0, 1.0])
    ears = tuple(truth.homdp.at(mean=means, precision=np.full(2, s**-2)) for s in NOISES)
    return truth, ears


CONTINUOUS_RULES: dict[str, Callable[[], Any]] = {
    "posterior_sampling": explorers.posterior_sampling,
    "uniform": explorers.uniform,
    "oracle": lambda: explorers.oracle(hearing()[0]),
    "hop_v": lambda: explorers.hop_v([hearing()[0]], hearing()[1]),
    "hop_v_mass": lambda: explorers.hop_v([hearing()[0]], hearing()[1], mass=0.8),
    "hop_b_class": lambda: explorers.hop_b_class(hearing()[1]),
}


def gaussian_run(which: str) -> Arrays:
    """A run with plans on cells of real-valued observations."""
    run = learn(hearing()[0], CONTINUOUS_RULES[which](), planners.quantised(gap=0.05), 8, seed=2)
    acted = adapt.acts(run.policy, LOUD, range(3), 2)
    return adapt.record_of(run) | {"policy": acted}


for _which in CONTINUOUS_RULES:
    case(f"learn/gaussian_tiger/{_which}")(partial(gaussian_run, _which))


@case("learn/gaussian_tiger/resumed")
def gaussian_resumed() -> Arrays:
    """A run in a continuous world that is stopped and resumed."""
    planner = planners.quantised(gap=0.05)
    run = learn(hearing()[0], CONTINUOUS_RULES["hop_v"](), planner, 8, seed=[5], stop_after=4)[0]
    return under("stopped", adapt.record_of(run)) | under("end", adapt.record_of(run.resume()))


def light_dark_run(which: str) -> Arrays:
    """A run with policies that plan online; their values are estimated."""
    truth = models.load("light_dark", horizon=2, light=2.0)
    made = {
        "uniform": explorers.uniform,
        "oracle": lambda: explorers.oracle(truth),
        "posterior_sampling": explorers.posterior_sampling,
        "hop_v": lambda: explorers.hop_v([truth], [truth, truth.homdp.draw(adapt.key(2))]),
    }
    planner = planners.particle_tree(simulations=20, particles=40, tree_particles=16)
    run = learn(truth, made[which](), planner, 4, seed=1, simulations=4)
    return adapt.record_of(run)


for _which in ("uniform", "oracle", "posterior_sampling", "hop_v"):
    case(f"learn/light_dark/{_which}", slow=_which != "uniform")(partial(light_dark_run, _which))


# 3. Plans

SHORT = {"hallway": 2, "rocksample": 3, "diagnosis": 3}
SMALL: dict[str, dict[str, Any]] = {"diagnosis": {"tests": 4, "horizon": 3}}
PLANNERS: dict[str, Callable[[], Any]] = {
    "history_tree": lambda: TREE,
    "alpha_vectors": planners.alpha_vectors,
    "bounded_search": planners.bounded_search,
    "auto": planners.auto,
}
LEFT_OUT = {  # too large, or unable to restrict actions
    ("rocksample", "alpha_vectors"),
    ("hallway", "alpha_vectors"),
    ("diagnosis", "alpha_vectors"),
}


@cache
def zoo(name: str) -> Any:
    """A world of the zoo, most with default options."""
    return models.load(name, **SMALL.get(name, {}))


@cache
def short(name: str) -> Any:
    """A world of the zoo with a short horizon; the lower-bound worlds keep theirs."""
    made = zoo(name)
    if name.startswith("lower_bound"):
        return made
    return adapt.shortened(made, SHORT.get(name, 3))


def plans(name: str) -> Arrays:
    """Value and upper bound of every planner, and the policy of the history tree."""
    found: Arrays = {}
    for planner, make in PLANNERS.items():
        if (name, planner) in LEFT_OUT:
            continue
        plan = adapt.plan_of(make(), short(name))
        found |= {f"{planner}.value": plan.value, f"{planner}.upper": plan.upper}
        found[f"{planner}.true value"] = adapt.value_of(plan.policy, short(name))
        if planner == "history_tree":
            found |= under("policy", adapt.policy_arrays(plan.policy))
    return found


def relaxed(name: str) -> Arrays:
    """Bounds from agents that observe more, and the best values of agents that observe less."""
    return adapt.bounds_of(short(name)) | adapt.restricted_values(short(name))


def only_relaxed(name: str) -> Arrays:
    """The bounds only, where the search for memoryless policies would be slow."""
    return adapt.bounds_of(short(name))


for _name in adapt.FINITE:
    case(f"plan/{_name}")(partial(plans, _name))
    case(f"bounds/{_name}")(partial(relaxed if _name not in SHORT else only_relaxed, _name))


@case("plan/longer")
def longer_plans() -> Arrays:
    """Horizons that are too long for a history tree."""
    tiger = models.load("tiger", horizon=12)
    maze = models.load("maze", horizon=8)
    found: Arrays = {}
    for name, plan in {
        "tiger, alpha_vectors": adapt.plan_of(planners.alpha_vectors(1e-6), tiger),
        "tiger, bounded_search": adapt.plan_of(planners.bounded_search(gap=1e-2), tiger),
        "tiger, auto": adapt.plan_of(planners.auto(), tiger),
        "maze, bounded_search": adapt.plan_of(planners.bounded_search(gap=1e-2), maze),
        "maze, auto": adapt.plan_of(planners.auto(gap=1e-2), maze),
    }.items():
        found |= {f"{name}, value": plan.value, f"{name}, upper": plan.upper}
    return found


def on_cells(name: str, gap: float) -> Arrays:
    """A plan on cells of real-valued observations, and its actions."""
    made = adapt.shortened(zoo(name), 2)
    plan = planners.quantised(gap=gap)(made)
    found = {"value": plan.value, "upper": plan.upper, "edges": adapt.edges(plan)}
    A = len(made.spaces.actions)
    return found | {"acts": adapt.acts(plan.policy, LOUD, range(A), 2)}


case("plan/gaussian_tiger/quantised")(partial(on_cells, "gaussian_tiger", 0.02))
case("plan/gaussian_screening/quantised", slow=True)(partial(on_cells, "gaussian_screening", 0.05))
case("plan/low_rank/quantised", slow=True)(partial(on_cells, "low_rank", 0.1))


@case("plan/gaussian_tiger/on given cells")
def given_cells() -> Arrays:
    """A plan on given cells."""
    plan = planners.plan_on_cells(hearing()[0], [-1.0, 0.0, 1.5])
    return {"value": plan.value, "upper": plan.upper, "edges": adapt.edges(plan)}


@case("plan/tiger/particle_tree")
def particles_on_tiger() -> Arrays:
    """The actions of online search after every short history, and its estimated value."""
    plan = planners.particle_tree(simulations=50, episodes=20, seed=3)(world("tiger"))
    acted = adapt.acts(plan.policy, range(2), range(3), 2)
    return {"acts": acted, "value": plan.value, "standard_error": adapt.standard_error(plan)}


def particles(name: str, places: np.ndarray, **options: Any) -> Arrays:
    """The first action of online search in a continuous world."""
    made = models.load(name, **options)
    policy = planners.particle_tree(simulations=20, particles=40, tree_particles=16)(made).policy
    return {"acts": np.array([policy.act(y[None], np.zeros(0, dtype=int)) for y in places])}


case("plan/light_dark/particle_tree")(partial(particles, "light_dark", LOUD, horizon=2, light=2.0))
case("plan/camera/particle_tree", slow=True)(
    partial(particles, "camera", LOUD.reshape(2, 2), horizon=2)
)


@case("values/tiger")
def values() -> Arrays:
    """Values, visits and the simulation lemma for two policies and two models."""
    here, there = world("tiger"), models.load("tiger", horizon=3, accuracy=0.6)
    other = adapt.numbers(there)
    found: Arrays = {}
    best = adapt.plan_of(TREE, here).policy
    for name, policy in (("uniform", uniform_policy(here)), ("best", best)):
        found |= {
            f"{name}.value": adapt.value_of(policy, here),
            f"{name}.value there": adapt.value_of(policy, there),
            f"{name}.visits": adapt.visits_of(policy, here),
        }
        found |= under(name, adapt.lemma(policy, here, other))
    return found


# 4. Tables


def zoo_tables(name: str) -> Arrays:
    """The tables of a finite world of the zoo with default options."""
    return adapt.tables(adapt.numbers(zoo(name)))


for _name in adapt.FINITE:
    case(f"tables/{_name}")(partial(zoo_tables, _name))


# 5. Posteriors and confidence sets


@cache
def data(name: str, n: int = 30) -> Any:
    """Episodes of the uniform policy."""
    return rollout(adapt.keys(11, n), world(name), uniform_policy(world(name)))


def closed_form(name: str) -> Arrays:
    """Posteriors without data, with data, and after more data."""
    declared = world(name).homdp
    prior = posterior(declared, adapt.no_counts(declared))
    first = posterior(declared, data(name)[:10])
    more = first.update(data(name)[10:])
    return (
        under("prior", adapt.believed(prior, adapt.key(1)))
        | under("first", adapt.believed(first, adapt.key(1)))
        | under("more", adapt.believed(more, adapt.key(2)))
    )


for _name in ("tiger", "tiger_table", "lock", "screening"):
    case(f"posterior/{_name}")(partial(closed_form, _name))


@case("posterior/enumerated")
def enumerated() -> Arrays:
    """Discrete sites are summed over."""
    truth = switch().draw(adapt.key(4))
    episodes = rollout(adapt.keys(5, 8), truth, uniform_policy(truth))
    belief = posterior(switch(), episodes)
    return adapt.believed(belief, adapt.key(1)) | adapt.atoms_of(belief)


SAMPLING = adapt.Sampling(chains=2, warmup=60, draws=60)


@case("posterior/laplace")
def by_laplace() -> Arrays:
    """A normal approximation."""
    belief = posterior(sensor(), data("sensor"), method="laplace", sampling=SAMPLING)
    found = adapt.believed(belief, adapt.key(1))
    return found | {"calibration": adapt.calibration_of(belief)}


def by_nuts(name: str, method: Any) -> Arrays:
    """Short chains, without convergence checks, and warm-started chains after more data."""
    declared = world(name).homdp
    first = posterior(
        declared, data(name)[:20], method=method, sampling=SAMPLING, key=adapt.key(3), force=True
    )
    found = under("first", adapt.believed(first, adapt.key(1)))
    more = first.update(data(name)[20:], adapt.key(4))
    return found | under("more", adapt.believed(more, adapt.key(1)))


case("posterior/nuts")(partial(by_nuts, "sensor", "auto"))
case("posterior/nuts/tiger", slow=True)(partial(by_nuts, "tiger", "nuts"))
case("posterior/nuts/checkup", slow=True)(partial(by_nuts, "checkup", "auto"))


def gaussian(name: str, slow_method: bool = False, **options: Any) -> Arrays:
    """Posteriors of continuous models."""
    truth = models.load(name, **options)
    episodes: Any = rollout(adapt.keys(12, 20), truth, uniform_policy(truth))
    sampled: dict[str, Any] = {"sampling": SAMPLING, "force": True} if slow_method else {}
    belief = posterior(truth.homdp, episodes[:12], key=adapt.key(3), **sampled)
    more = belief.update(episodes[12:], adapt.key(4))
    return under("first", adapt.continuous_belief(belief, adapt.key(1))) | under(
        "more", adapt.continuous_belief(more, adapt.key(1))
    )


case("posterior/gaussian_tiger")(partial(gaussian, "gaussian_tiger", horizon=3))
case("posterior/light_dark", slow=True)(partial(gaussian, "light_dark", True, horizon=3))


@case("posterior/predictive check")
def predictive() -> Arrays:
    """Observed and replicated episodes."""
    declared, policy = world("tiger").homdp, uniform_policy(world("tiger"))
    belief = posterior(declared, data("tiger"))
    return adapt.check_of(adapt.key(2), belief, data("tiger"), policy)


@cache
def mixed() -> Any:
    """Dirichlet rows with various concentrations."""
    generator = np.random.default_rng(3)
    return tabular(
        T=dist.Dirichlet(generator.uniform(0.5, 4, (3, 2, 3))),
        O=dist.Dirichlet(generator.uniform(0.5, 4, (3, 2))),
        initial=[0.2, 0.3, 0.5],
        reward=np.linspace(0, 1, 6).reshape(3, 2),
        horizon=3,
    )


@cache
def confidence_problems() -> dict[str, tuple[Any, Any]]:
    """Declarations and episodes for confidence sets."""
    truth = mixed().draw(adapt.key(9))
    episodes = rollout(adapt.keys(13, 30), truth, uniform_policy(truth))
    some = {name: (world(name).homdp, data(name)) for name in ("tiger", "tiger_table", "lock")}
    return some | {"mixed": (mixed(), episodes)}


def radii(name: str) -> Arrays:
    """Radii and bonuses."""
    declared, episodes = confidence_problems()[name]
    found: Arrays = {}
    for kind, made in adapt.radii_of(declared, episodes, adapt.key(6)).items():
        found |= under(kind, adapt.radii_arrays(made))
        found |= under(f"bonuses of {kind}", adapt.bonuses_of(declared, episodes, made))
    return found


def backups(name: str) -> Arrays:
    """Optimistic backups of given alpha-vectors."""
    declared, episodes = confidence_problems()[name]
    X, Y, A, _ = adapt.sizes(declared)
    alpha = np.random.default_rng(1).integers(0, 25, (A, Y, X)) / 8
    return adapt.backups_of(declared, posterior(declared, episodes), alpha, adapt.key(8))


for _name in ("tiger", "tiger_table", "lock", "mixed"):
    case(f"radii/{_name}")(partial(radii, _name))
    case(f"backups/{_name}")(partial(backups, _name))


# 6. Rollouts, counts, densities


def played(name: str) -> Arrays:
    """Episodes of two policies, their counts and returns."""
    here = world(name)
    best = adapt.plan_of(TREE, here).policy
    found: Arrays = {}
    for what, policy in (("uniform", uniform_policy(here)), ("best", best)):
        episodes = rollout(adapt.keys(21, 12), here, policy)
        found |= under(what, adapt.batch(episodes))
        found |= under(
            what, under("counts", adapt.count_arrays(adapt.counted(here.homdp, episodes)))
        )
        found[f"{what}.returns"] = here.homdp.returns(episodes)
    return found | under("single", adapt.batch(rollout(adapt.key(5), here, best)))


for _name in ("tiger", "lock", "screening"):
    case(f"rollout/{_name}")(partial(played, _name))


def played_continuous(name: str) -> Arrays:
    """Episodes of the uniform policy in a continuous world."""
    here = adapt.shortened(zoo(name), 2)
    episodes = rollout(adapt.keys(22, 6), here, uniform_policy(here))
    return adapt.batch(episodes) | {"returns": here.homdp.returns(episodes)}


for _name in adapt.CONTINUOUS:
    _big = _name in ("low_rank", "gaussian_screening")
    case(f"rollout/{_name}", slow=_big)(partial(played_continuous, _name))


def densities(name: str) -> Arrays:
    """The log density of revealed episodes at parameters from the prior."""
    here = world(name)
    points = [adapt.from_prior(here.homdp, adapt.key(30 + k)) for k in range(3)]
    some = data(name)[:5]
    found: Arrays = {
        "density": np.array([adapt.hindsight_density(here.homdp, some, point) for point in points])
    }
    for site in points[0]:
        found[f"prior.{site}"] = np.stack([np.asarray(point[site]) for point in points])
    return found


for _name in ("tiger", "tiger_table", "lock", "sensor"):
    case(f"density/{_name}", slow=_name in ("tiger_table", "lock"))(partial(densities, _name))


@case("density/gaussian_tiger")
def continuous_density() -> Arrays:
    """The same for real-valued observations."""
    truth, ears = hearing()
    episodes = rollout(adapt.keys(23, 5), truth, uniform_policy(truth))
    found = [adapt.hindsight_density(truth.homdp, episodes, ear.parameters) for ear in ears]
    return {"density": np.array(found)}


# 7. Studies and the command line


@cache
def small_study() -> tuple[str, Arrays]:
    """Two rules, two seeds, two priors: the digest and the regret of the runs."""
    asked: dict[str, Any] = {"episodes": 8, "seeds": 2, "priors": ("declared", "flat")}
    rules = ["greedy", "posterior_sampling"]
    found: Arrays = {}
    with tempfile.TemporaryDirectory() as out:
        done = study.compare("tiger:horizon=2", rules, **asked, out=Path(out) / "it", workers=1)
        assert done.complete
        for what, runs in done.runs.items():
            for seed, run in enumerate(runs):
                name = f"{', '.join(what[1:])}, seed {seed}"
                found |= {f"{name}, regret": run.regret, f"{name}, values": run.values}
        return study.digest(done.directory), found


@case("study/digest")
def study_digest() -> Arrays:
    """The digest of a small study."""
    return {"digest": small_study()[0]}


@case("study/regret")
def study_regret() -> Arrays:
    """The regret of its runs."""
    return small_study()[1]


@case("study/side by side")
def side_by_side() -> Arrays:
    """A study in memory, and its rows."""
    rules = [explorers.greedy(), explorers.uniform(), explorers.tight()]
    runs = study.side_by_side(world("tiger"), rules, TREE, 10, [0, 1, 2])
    found: Arrays = {}
    for name, several in runs.items():
        found[f"{name}.regret"] = np.array([run.regret for run in several])
    for row in study.summarise(runs):
        found[f"{row.rule}.less"] = row.less
    return found


def command(words: tuple[str, ...]) -> Arrays:
    """The numbers that a command prints."""
    return {"numbers": adapt.printed(*words)}


for _words in (
    ("plan", "tiger"),
    ("plan", "maze", "--horizon", "4"),
    ("learn", "tiger", "--episodes", "50"),
    ("theory", "tiger"),
    ("models", "tiger"),
    ("play", "tiger", "--episodes", "2", "--seed", "1"),
):
    case(f"cli/{' '.join(_words)}")(partial(command, _words))


# 8. Files and environments


@case("formats/tiger")
def round_trip() -> Arrays:
    """The numbers in a written file, and in the world read from it."""
    with tempfile.TemporaryDirectory() as out:
        path = Path(out) / "tiger.POMDP"
        write_pomdp(world("tiger"), path)
        body = "\n".join(line.partition("#")[0] for line in path.read_text().splitlines())
        back = read_pomdp(path, 3)
    return {"written": adapt.all_numbers(body)} | adapt.tables(adapt.numbers(back))


def stepped(made: Any, A: int, H: int, per_step: bool) -> Arrays:
    """Episodes of a seeded environment, with the actions in turn."""
    env = adapt.HOMDPEnv(made, per_step=per_step)
    observations, rewards, states = [], [], []
    for episode in range(4):
        seen, _ = env.reset(seed=17 if episode == 0 else None)
        observations.append(seen)
        for h in range(H):
            seen, reward, over, _, info = env.step((episode + h) % A)
            observations.append(seen)
            rewards.append(reward)
        assert over
        states.append(info["latent_states"])
    return {
        "observations": np.array(observations),
        "rewards": np.array(rewards),
        "states": np.array(states),
    }


@case("gym/tiger")
def tiger_environment() -> Arrays:
    """Transitions of the tiger, with rewards at the end or at every step."""
    late, soon = (stepped(world("tiger"), 3, 3, per_step) for per_step in (False, True))
    return under("at the end", late) | under("every step", soon)


@case("gym/gaussian_tiger")
def gaussian_environment() -> Arrays:
    """Transitions with real-valued observations."""
    return stepped(hearing()[0], 3, 2, True)
