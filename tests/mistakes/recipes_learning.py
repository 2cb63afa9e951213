"""Valid calls of the names at the root: policies, posteriors, learning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from homdp_ppl import (
    BlindPolicy,
    FunctionPolicy,
    GraphPolicy,
    Mixture,
    Plan,
    evaluate,
    explorers,
    learn,
    make_plan,
    posterior,
    rollout,
    uniform_policy,
)
from homdp_ppl.learning.learner import Learner
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Gate, Sampling
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record

KEY = things.KEY


def acting() -> Iterator[Recipe]:
    """Policies, plans and simulation."""
    tiger, policy, plan = things.tiger(), things.policy(), things.plan()
    blind = BlindPolicy(np.full((2, 3), 1 / 3))
    yield record("BlindPolicy", BlindPolicy, probabilities=np.full((2, 3), 1 / 3))
    yield recipe(
        "BlindPolicy.act",
        blind.act,
        observations=np.array([0, 1]),
        actions=np.array([2]),
        free="observations actions",
    )
    yield recipe("BlindPolicy.graph", blind.graph, observations=2)
    yield from reading("BlindPolicy", blind, "table")
    yield recipe("FunctionPolicy", FunctionPolicy, function=things.always_listening, model=tiger)
    guideline = FunctionPolicy(things.always_listening, tiger)
    yield recipe("FunctionPolicy.act", guideline.act, observations=[0, 1], actions=[2])
    yield recipe(
        "GraphPolicy",
        GraphPolicy,
        start=policy.start,
        probabilities=policy.probabilities,
        successor=policy.successor,
        names=(("dark", "light"), ("wait", "go", "sit")),
    )
    named = policy.named(tiger)
    yield recipe(
        "GraphPolicy.act", policy.act, observations=np.array([0, 1]), actions=np.array([2])
    )
    yield recipe("GraphPolicy.act", named.act, observations=[0], actions=[])
    yield recipe("GraphPolicy.first", policy.first, observation=0)
    yield recipe("GraphPolicy.next", policy.next, node=0, action=1, observation=1)
    yield recipe(
        "GraphPolicy.from_policy",
        GraphPolicy.from_policy,
        policy=blind,
        model=tiger,
        max_nodes=1000,
    )
    yield recipe("GraphPolicy.graph", policy.graph)
    yield recipe("GraphPolicy.with_card", policy.with_card, card=policy.card)
    yield recipe("GraphPolicy.load", GraphPolicy.load, path=things.saved_policy())
    yield recipe("GraphPolicy.named", policy.named, model=tiger)
    yield recipe("GraphPolicy.save", policy.save, path=things.folder() / "again.npz")
    yield recipe("uniform_policy", uniform_policy, model=tiger)
    allowed = things.only_listening
    yield recipe("uniform_policy", uniform_policy, model=tiger, allowed=allowed, free="allowed")
    yield recipe("rollout", rollout, key=KEY, world=tiger, policy=policy)
    yield recipe("rollout", rollout, key=KEY, world=tiger, policy=blind)
    yield recipe("evaluate", evaluate, policy=policy, pomdp=tiger.pomdp)
    yield recipe("evaluate", evaluate, policy=blind, pomdp=tiger.pomdp)
    yield recipe(
        "make_plan",
        make_plan,
        policy=policy,
        value=1.0,
        upper=2.0,
        model=tiger.pomdp,
        planner="a coin",
        seconds=0.5,
        free="planner seconds upper",
    )
    yield recipe(
        "Plan",
        Plan,
        policy=policy,
        value=1.0,
        upper=2.0,
        certified=True,
        planner="a coin",
        statistics={"seconds": 1.0},
        spaces=tiger.spaces,
        model=tiger.pomdp,
        allowed=np.ones(policy.probabilities.shape, dtype=bool),
        free="planner statistics model upper",
    )
    yield recipe("Plan.draw", plan.draw, steps=1, axes=None)
    yield recipe("Plan.first_steps", plan.first_steps, histories=10)
    yield recipe("Plan.named", plan.named, model=tiger)
    yield recipe("Plan.tree", plan.tree, steps=1, max_nodes=1000)
    yield from reading("Plan", plan, "finite", "gap", "rounding")


def believing() -> Iterator[Recipe]:
    """Posteriors."""
    model, belief = things.tiger().homdp, things.belief()
    yield recipe(
        "posterior",
        posterior,
        homdp=model,
        data=things.episodes(),
        method="auto",
        key=KEY,
        sampling=Sampling(chains=2, warmup=20, draws=20),
        gate=Gate(),
        force=False,
    )
    yield recipe("posterior", posterior, homdp=model, data=things.counts())
    yield recipe("Posterior.draws", belief.draws, key=KEY, n=3)
    yield recipe("Posterior.parameters", belief.parameters, key=KEY, n=3)
    yield recipe("Posterior.require_quantiles", belief.require_quantiles)
    yield recipe("Posterior.require_rows", belief.require_rows)
    yield recipe("Posterior.to_arviz", belief.to_arviz, episodes=things.episodes())
    yield recipe("Posterior.update", belief.update, data=things.episodes(), key=None)
    yield recipe("Posterior.update", belief.update, data=things.counts(), key=KEY)
    yield recipe("Posterior.worlds", belief.worlds, key=KEY, n=2)
    yield from reading(
        "Posterior", belief, *["counts", "dataset", "episodes", "mean", "site_means", "variance"]
    )


def learning() -> Iterator[Recipe]:
    """learn, runs and learners."""
    tiger, run = things.tiger(), things.run()
    tree, rule = history_tree(), explorers.greedy()
    yield recipe(
        "learn",
        learn,
        world=tiger,
        explorer=rule,
        planner=tree,
        episodes=3,
        seed=0,
        model=None,
        stop_after=2,
        stop_when=0.1,
        foresight=False,
        compiled=False,
        progress=False,
        simulations=10,
        reveal=None,
    )
    yield recipe(
        "learn",
        learn,
        world=tiger,
        explorer=explorers.tight(),
        planner=tree,
        episodes=3,
        seed=[0, 1],
        model=tiger.homdp,
        compiled=False,
        patient="episodes",
        free="seed",
    )
    yield record("Mixture", Mixture, run=run)
    yield recipe("Mixture.draw", run.mixture.draw, key=KEY)
    yield from reading("Mixture", run.mixture, "value")
    yield recipe("Run.planned_at", run.planned_at, index=1)
    yield recipe("Run.policy_at", run.policy_at, index=1)
    yield recipe("Run.resume", run.resume, stop_after=3)
    yield recipe("Run.to_arviz", run.to_arviz)
    yield recipe("Run.to_dataset", run.to_dataset)
    yield from reading(
        "Run",
        run,
        *[
            "about",
            "compiled",
            "episodes",
            "episodes_per_round",
            "estimated",
            "gaps",
            "horizon",
            "impossible",
        ],
        *[
            "inexact",
            "below_certificate",
            "certificate",
            "mixture",
            "model_name",
            "optimistic",
            "optimum",
            "played",
            "policy",
            "posterior",
            "regret",
            "lost",
            "lost_by_round",
            "guaranteed",
        ],
        *["rescaled", "return_range", "returns", "values", "was_optimistic"],
    )
    learner = Learner(tiger.homdp, rule, tree, 3)
    state = learner.init()
    proposal, decision = learner.propose(0, state), learner.decide(0, state)
    yield recipe(
        "Learner",
        Learner,
        homdp=tiger.homdp,
        explorer=explorers.tight(),
        planner=tree,
        episodes=100,
        seed=0,
        simulations=10,
        hindsight="complete",
    )
    yield recipe("Learner.init", learner.init)
    yield recipe("Learner.key", learner.key, episode=0)
    yield recipe("Learner.out_of_date", learner.out_of_date, state=state, decision=decision)
    yield recipe("Learner.decide", learner.decide, key=0, state=state)
    yield recipe("Learner.propose", learner.propose, key=KEY, state=state)
    yield recipe("Learner.plan", learner.plan, proposal=proposal, state=state)
    yield recipe("Learner.policy_of", learner.policy_of, decision=decision, step=1)
    yield recipe(
        "Learner.update", learner.update, state=state, episode=things.episodes()[0], simulated=False
    )
    yield from reading("Learner", learner, "planning", "episodes_per_round")
