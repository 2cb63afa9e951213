"""Valid calls of confidence sets, evaluation, posteriors and theory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from homdp_ppl import BlindPolicy, Counts, confidence, evaluation, posteriors, theory
from homdp_ppl.confidence import Continuations, Event, Moments, OneStep, Radii
from homdp_ppl.evaluation import Estimate, Restricted, SimulationLemma
from homdp_ppl.posteriors import Diagnostics, Gate, Sampling
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record

KEY = things.KEY


def _sequences(model, counts, policy) -> Iterator[Recipe]:
    """Confidence sequences, sets, ranges and intervals."""
    data = {"homdp": model, "counts": counts, "delta": 0.1, "mixture": "jeffreys", "known": True}
    sets = confidence.confidence_sets(**data)
    box, ranges = sets.start(), confidence.value_ranges(sets)
    row = np.array([0.1, 0.2])
    yield recipe(
        "confidence.confidence_sequence",
        confidence.confidence_sequence,
        successes=3,
        n=10,
        level=0.1,
        a=0.5,
        b=0.5,
        free="successes n level a b",
    )
    yield recipe("confidence.confidence_sets", confidence.confidence_sets, **data)
    yield recipe(
        "confidence.transport_bound",
        confidence.transport_bound,
        up=row,
        down=row,
        high=np.ones(2),
        low=np.zeros(2),
        free="up down high low",
    )
    yield recipe("confidence.value_ranges", confidence.value_ranges, sets=sets)
    data["data"] = data.pop("counts")
    yield recipe("confidence.interval", confidence.interval, **data, policy=policy, free="data")
    yield record("confidence.Box", confidence.Box, **box._asdict())
    yield record("confidence.Interval", confidence.Interval, low=np.zeros(2), high=np.ones(2))
    yield record("confidence.Ranges", confidence.Ranges, **ranges._asdict())
    yield record("confidence.Sets", confidence.Sets, **sets._asdict())
    yield from reading("confidence.Interval", confidence.Interval(np.zeros(2), np.ones(2)), "width")
    yield from reading("confidence.Sets", sets, "least")
    yield recipe("confidence.Sets.start", sets.start)
    yield recipe("confidence.Sets.moves", sets.moves, h=0)
    yield recipe("confidence.Sets.shows", sets.shows, h=0, a=1)


def confidences() -> Iterator[Recipe]:
    """Radii, bonuses, backups and events."""
    tiger, lamp = things.tiger(), things.lamp()
    model, counts, pomdp = tiger.homdp, things.counts(), tiger.pomdp
    radii, policy = things.explorers_radii(), things.policy()
    optimal = confidence.continuations(policy, pomdp)
    believed = confidence.moments(lamp, Counts.zero(lamp))
    alpha = np.array([[[0.0, 1.0], [0.0, 1.0]]])
    many = {"n": np.array([1, 5, 50]), "level": 0.1}
    both = {"homdp": model, "counts": counts}
    more = {"episodes": 100, "delta": 0.1, "known": True}
    yield record("confidence.Continuations", Continuations, **optimal._asdict())
    yield record("confidence.Event", Event, holds=True, slack=0.1, where="x")
    yield record(
        "confidence.ClassEvent", confidence.ClassEvent, holds=True, slack=0.1, where=(0, 1)
    )
    yield record("confidence.Moments", Moments, **believed._asdict())
    yield record("confidence.OneStep", OneStep, mean=np.zeros(2), deviation=np.zeros(2))
    yield record("confidence.Radii", Radii, **radii._asdict())
    yield recipe("confidence.backup_moments", confidence.backup_moments, homdp=lamp)
    yield recipe(
        "confidence.bernstein",
        confidence.bernstein,
        **many,
        variance=0.1,
        span=1.0,
        free="n variance",
    )
    yield recipe(
        "confidence.bernstein",
        confidence.bernstein,
        n=5,
        level=0.1,
        variance=0.1,
        span=1.0,
        free="n variance",
    )
    yield from _sequences(model, counts, policy)
    yield recipe("confidence.hoeffding", confidence.hoeffding, **many, span=1.0, free="n")
    yield recipe("confidence.weissman", confidence.weissman, **many, outcomes=2, free="n outcomes")
    for name in ("hop_b_bonus", "hop_b_class_bonus"):
        yield recipe(f"confidence.{name}", getattr(confidence, name), radii=radii, horizon=2)
    yield recipe(
        "confidence.centred_bonus",
        confidence.centred_bonus,
        radii=radii,
        transition=pomdp.moves(0),
        horizon=2,
    )
    yield recipe(
        "confidence.start_bonus",
        confidence.start_bonus,
        radii=radii,
        initial=pomdp.initial,
        horizon=2,
    )
    yield recipe("confidence.continuations", confidence.continuations, policy=policy, pomdp=pomdp)
    yield recipe(
        "confidence.dirichlet_radii",
        confidence.dirichlet_radii,
        homdp=lamp,
        counts=Counts.zero(lamp),
        delta=0.1,
    )
    yield recipe("confidence.draw_backup", confidence.draw_backup, z=1.0)
    yield recipe(
        "confidence.moment_backup", confidence.moment_backup, homdp=lamp, z=1.0, unvisited=2.0
    )
    yield recipe(
        "confidence.emission_event", confidence.emission_event, world=tiger, counts=counts, **more
    )
    yield recipe(
        "confidence.class_transition_event",
        confidence.class_transition_event,
        world=tiger,
        counts=counts,
        episodes=100,
        delta=0.1,
    )
    yield recipe(
        "confidence.class_emission_event",
        confidence.class_emission_event,
        world=tiger,
        counts=counts,
        emissions=[[[0.5, 0.5], [0.5, 0.5]]],
        episodes=100,
        delta=0.1,
    )
    yield recipe(
        "confidence.likelihood_event",
        confidence.likelihood_event,
        truth=[[0.5, 0.5]],
        members=[[[0.9, 0.1]]],
        counts=[[9, 1]],
        epochs=3,
        delta=0.1,
    )
    yield recipe(
        "confidence.freedman_event",
        confidence.freedman_event,
        expected=[[[1.0]]],
        kept=[[[0.5]]],
        epochs=3,
        size=2,
        delta=0.1,
    )
    yield recipe(
        "confidence.transition_event",
        confidence.transition_event,
        world=tiger,
        counts=counts,
        optimal=optimal,
        **more,
    )
    yield recipe(
        "confidence.relative_transition_event",
        confidence.relative_transition_event,
        world=tiger,
        counts=counts,
        c=2.0,
        **more,
    )
    yield recipe("confidence.empirical", confidence.empirical, **both, known=True)
    yield recipe("confidence.has_moments", confidence.has_moments, homdp=model)
    yield recipe(
        "confidence.highest_density_set",
        confidence.highest_density_set,
        log_weights=np.log([0.1, 0.6, 0.3]),
        mass=0.8,
    )
    yield recipe(
        "confidence.likelihood_set",
        confidence.likelihood_set,
        log_likelihood=np.array([-10.0, -12.5, -11.0]),
        beta=2.0,
    )
    yield recipe(
        "confidence.hop_b_class_radii",
        confidence.hop_b_class_radii,
        **both,
        size=5,
        scale=0.5,
        **more,
    )
    yield recipe("confidence.hop_b_radii", confidence.hop_b_radii, **both, scale=0.5, **more)
    yield recipe("confidence.weissman_radii", confidence.weissman_radii, **both, **more)
    yield recipe("confidence.moments", confidence.moments, homdp=lamp, counts=Counts.zero(lamp))
    yield recipe(
        "confidence.one_step",
        confidence.one_step,
        belief=things.belief(),
        alpha_next=np.ones((3, 2, 2)),
        key=KEY,
        draws=8,
    )
    yield recipe(
        "confidence.quantile_radii",
        confidence.quantile_radii,
        belief=things.belief(),
        key=KEY,
        delta=0.1,
        previous=None,
    )
    yield recipe("confidence.start_variance", confidence.start_variance, homdp=lamp)
    yield recipe("confidence.tilde_epsilon", confidence.tilde_epsilon, c=1.0, **both, **more)
    yield recipe(
        "confidence.upper_quantile",
        confidence.upper_quantile,
        values=np.arange(1.0, 30.0),
        level=0.9,
    )
    _ = alpha


def evaluating() -> Iterator[Recipe]:
    """The value of policies."""
    tiger, lit = things.tiger(), things.lit()
    pomdp, policy = tiger.pomdp, things.policy()
    other = pomdp.with_tables(emission=np.full((2, 2), 0.5))
    yield record(
        "evaluation.Estimate",
        Estimate,
        mean=1.0,
        standard_error=0.1,
        episodes=3,
        interval=(0.8, 1.2),
    )
    yield record("evaluation.Restricted", Restricted, value=1.0, policy=policy)
    yield record(
        "evaluation.SimulationLemma", SimulationLemma, difference=0.1, distance=0.1, bound=0.3
    )
    yield recipe("evaluation.best_blind", evaluation.best_blind, pomdp=pomdp, max_nodes=1000)
    yield recipe(
        "evaluation.best_memoryless", evaluation.best_memoryless, pomdp=pomdp, max_nodes=1000
    )
    yield recipe(
        "evaluation.estimate",
        evaluation.estimate,
        policy=policy,
        world=tiger,
        key=KEY,
        episodes=20,
        level=0.9,
    )
    for name in ("fast_informed_bound", "mdp_values", "qmdp"):
        yield recipe(f"evaluation.{name}", getattr(evaluation, name), pomdp=lit)
    yield recipe("evaluation.occupancy", evaluation.occupancy, policy=policy, pomdp=pomdp)
    yield recipe("evaluation.policy_alphas", evaluation.policy_alphas, policy=policy, pomdp=pomdp)
    yield recipe(
        "evaluation.root_value",
        evaluation.root_value,
        pomdp=pomdp,
        vectors=evaluation.qmdp(pomdp)[0].T,
    )
    yield recipe(
        "evaluation.simulation_lemma",
        evaluation.simulation_lemma,
        policy=policy,
        pomdp=pomdp,
        other=other,
    )
    yield recipe(
        "evaluation.trajectory_distance",
        evaluation.trajectory_distance,
        policy=policy,
        pomdp=pomdp,
        other=other,
    )
    graph = BlindPolicy(np.array([[1.0, 0.0], [1.0, 0.0]])).graph(observations=2)
    yield recipe(
        "evaluation.uniform_at",
        evaluation.uniform_at,
        policy=graph,
        step=2,
        horizon=2,
        allowed=np.ones(graph.probabilities.shape, dtype=bool),
    )


def inferring() -> Iterator[Recipe]:
    """Diagnostics and checks of posteriors."""
    check, tables = things.check(), things.tiger().pomdp.stationary()
    mixed = Diagnostics(divergences=0, draws=200, chains=2, r_hat={"T": 1.0}, ess={"T": 150.0})
    yield record("posteriors.Diagnostics", Diagnostics, **mixed._asdict())
    yield recipe("posteriors.Diagnostics.problems", mixed.problems, gate=Gate())
    yield record("posteriors.Gate", Gate, divergences=0.1, r_hat=1.1, ess=10.0)
    yield record("posteriors.Sampling", Sampling, chains=2, warmup=10, draws=10)
    yield recipe("posteriors.PredictiveCheck.summary", check.summary)
    yield from reading("posteriors.PredictiveCheck", check, *["findings", "frequencies", "unusual"])
    yield recipe(
        "posteriors.log_likelihood",
        posteriors.log_likelihood,
        tables=tables,
        counts=things.counts(),
    )
    yield recipe(
        "posteriors.predictive_check",
        posteriors.predictive_check,
        key=KEY,
        belief=things.belief(),
        episodes=things.episodes(),
        policy=things.policy(),
        draws=160,
    )


def statements() -> Iterator[Recipe]:
    """The paper's statements."""
    tiger, counts, policy = things.tiger(), things.counts(), things.policy()
    signs, others = np.array([1, 1, -1, 1]), np.array([1, -1, -1, 1])
    sizes = {"states": 2, "actions": 3, "horizon": 4}
    common = {
        "world": tiger,
        "counts": counts,
        "episodes": 100,
        "delta": 0.1,
        "scale": 1.0,
        "known": True,
    }
    O = tiger.pomdp.shows(0)  # noqa: E741
    yield record("theory.Recursion", theory.Recursion, step=1, left=0.1, right=0.2)
    yield record("theory.Statement", theory.Statement, **theory.report(tiger, 100)[0]._asdict())
    yield recipe("theory.divergence", theory.divergence, signs=signs, others=others, epsilon=0.5)
    yield recipe("theory.separation", theory.separation, signs=signs, others=others, epsilon=0.2)
    yield recipe(
        "theory.elliptical_potential",
        theory.elliptical_potential,
        features=np.array([[1.0], [1.0]]),
        regulariser=1.0,
    )
    yield recipe(
        "theory.hop_b_bound", theory.hop_b_bound, observations=2, **sizes, episodes=1000, delta=0.1
    )
    yield recipe(
        "theory.hop_b_tv_bound",
        theory.hop_b_tv_bound,
        observations=2,
        **sizes,
        episodes=1000,
        delta=0.1,
    )
    yield recipe(
        "theory.hop_b_class_bound",
        theory.hop_b_class_bound,
        **sizes,
        episodes=1000,
        size=50,
        delta=0.1,
    )
    yield recipe(
        "theory.hop_b_class_optimism",
        theory.hop_b_class_optimism,
        policies=[policy],
        emissions=np.stack([O, O]),
        **common,
    )
    yield recipe(
        "theory.hop_b_class_samples",
        theory.hop_b_class_samples,
        **sizes,
        size=100,
        accuracy=0.4,
        delta=0.1,
    )
    yield recipe(
        "theory.alpha_recursion",
        theory.alpha_recursion,
        policy=policy,
        world=common["world"],
        counts=common["counts"],
        episodes=100,
        delta=0.1,
        c=1.0,
    )
    yield recipe(
        "theory.simulation_recursion",
        theory.simulation_recursion,
        policy=policy,
        pomdp=common["world"].pomdp,
        other=common["world"].pomdp,
    )
    yield recipe("theory.hop_b_optimism", theory.hop_b_optimism, policy=policy, **common)
    yield recipe(
        "theory.hop_b_samples",
        theory.hop_b_samples,
        observations=2,
        **sizes,
        accuracy=0.4,
        delta=0.1,
    )
    few = {"actions": 3, "horizon": 4, "transitions": 2, "emissions": 5, "rank": 2, "delta": 0.1}
    yield recipe("theory.hop_v_bound", theory.hop_v_bound, episodes=1000, **few)
    yield recipe("theory.hop_v_samples", theory.hop_v_samples, accuracy=0.4, **few)
    yield recipe("theory.lower_bound", theory.lower_bound, states=127, observations=10, epsilon=0.1)
    yield recipe("theory.packing", theory.packing, length=16, seed=0)
    yield recipe(
        "theory.pigeonhole", theory.pigeonhole, visited=np.array([[0, 1], [1, 1]]), cells=2
    )
    for name in ("reciprocal_pigeonhole", "root_pigeonhole"):
        yield recipe(f"theory.{name}", getattr(theory, name), cells=4, horizon=2, episodes=100)
    yield recipe("theory.report", theory.report, model=tiger, episodes=100, scale=2.0)
    yield recipe("theory.report", theory.report, model=tiger, episodes=9, delta=0.1, accuracy=0.5)
    yield recipe(
        "theory.unavoidable_gap", theory.unavoidable_gap, states=127, observations=10, episodes=50
    )
