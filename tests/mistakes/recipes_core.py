"""Valid calls of the names at the root: declarations, models, policies, episodes, learning."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import numpyro.distributions as dist

from homdp_ppl import (
    HOMDP,
    POMDP,
    BlindPolicy,
    Counts,
    Episode,
    Episodes,
    GraphPolicy,
    Kernels,
    Mixture,
    Plan,
    Problem,
    Real,
    Spaces,
    Trajectory,
    World,
    evaluate,
    explorers,
    homdp,
    learn,
    make_plan,
    posterior,
    rollout,
    tabular,
    uniform_policy,
)
from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.learning.learner import Learner
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Gate, Sampling
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record

KEY = things.KEY
T = np.full((2, 2, 2), 0.5)
O = np.array([[0.9, 0.1], [0.2, 0.8]])  # noqa: E741
START = np.array([0.5, 0.5])
REWARD = np.array([[0.0, 0.5], [1.0, 0.25]])


def _coin(**given):
    return homdp(**given)(lambda: Kernels(START, T, O))


def _program(program):
    return homdp(states=2, observations=2, actions=2, horizon=2, reward=REWARD)(program)


def declaring() -> Iterator[Recipe]:
    """Declarations and worlds."""
    tiger = things.tiger()
    model = tiger.homdp
    names = {"states": ("off", "on"), "observations": ("dark", "light"), "actions": ("wait", "go")}
    yield recipe("homdp", _coin, **names, horizon=2, reward=REWARD)
    yield recipe("homdp", _coin, states=2, observations=2, actions=2, horizon=2, reward=REWARD)
    yield recipe("homdp", _program, program=lambda: Kernels(START, T, O))
    yield recipe(
        "tabular",
        tabular,
        T=T,
        O=O,
        initial=START,
        reward=REWARD,
        horizon=2,
        states=["off", "on"],
        observations=["dark", "light"],
        actions=["wait", "go"],
        name="lamp",
    )
    yield recipe(
        "tabular",
        tabular,
        T=dist.Dirichlet(np.ones((2, 2, 2))),
        O=O,
        initial=START,
        reward=REWARD,
        horizon=2,
    )
    yield record("Kernels", Kernels, initial=START, transition=T, emission=O)
    yield record("Real", Real, dimension=1)
    yield from reading("Real", Real(1), "shape")
    yield recipe(
        "HOMDP",
        HOMDP,
        name="lamp",
        spaces=model.spaces,
        reward=model.reward,
        function=model.function,
        sites=model.sites,
    )
    yield recipe("HOMDP.at", model.at, accuracy=0.8)
    yield recipe("HOMDP.at", things.lamp().at, T=np.full((2, 1, 2), 0.5))
    yield recipe("HOMDP.counts", model.counts, episodes=things.episodes())
    yield recipe("HOMDP.counts", model.counts, episodes=[things.episodes()[0]])
    yield recipe("HOMDP.draw", model.draw, key=KEY)
    yield recipe("HOMDP.hindsight", model.hindsight, episodes=things.episodes())
    yield recipe("HOMDP.numbers", model.numbers, parameters={"accuracy": 0.8})
    yield recipe("HOMDP.returns", model.returns, episodes=things.episodes())
    yield recipe("HOMDP.sample_prior", model.sample_prior, key=KEY)
    yield recipe("HOMDP.tables", model.tables, parameters={"accuracy": 0.8})
    yield recipe("HOMDP.with_horizon", model.with_horizon, horizon=3)
    yield from reading(
        "HOMDP",
        model,
        *[
            "actions",
            "cache",
            "dynamics",
            "fingerprint",
            "horizon",
            "observations",
            "program",
            "reward_table",
        ],
        *["states", "structure", "unrolled"],
    )
    yield recipe("World", World, homdp=model, parameters=dict(tiger.parameters))
    yield recipe(
        "World.play",
        tiger.play,
        keys=jax.random.split(KEY, 2),
        policy=things.policy(),
        actions=None,
    )
    yield recipe("World.returns", tiger.returns, episodes=things.episodes())
    yield recipe("World.with_horizon", tiger.with_horizon, horizon=3)
    yield from reading(
        "World", tiger, *["cache", "dynamics", "fingerprint", "numbers", "pomdp", "spaces"]
    )
    yield record(
        "Spaces",
        Spaces,
        states=("off", "on"),
        observations=("dark", "light"),
        actions=("wait",),
        horizon=2,
    )
    yield recipe("Spaces.entry", tiger.spaces.entry, table="emission", index=[0, 1])
    yield from reading("Spaces", tiger.spaces, *["finite", "names", "sizes", "spaces"])


def numbers() -> Iterator[Recipe]:
    """POMDPs, counts and episodes."""
    tiger = things.tiger()
    pomdp, episodes = tiger.pomdp, things.episodes()
    one = episodes[0]
    yield record("POMDP", POMDP, **pomdp._asdict())
    yield recipe(
        "POMDP.of",
        POMDP.of,
        initial=START,
        transition=T,
        emission=O,
        reward=REWARD,
        horizon=2,
        free="initial transition emission reward",
    )
    yield recipe(
        "POMDP.of",
        POMDP.of,
        initial=START,
        transition=T,
        emission=O,
        reward=np.stack([REWARD, REWARD]),
        terminal=np.array([False, True]),
        free="initial transition emission reward",
    )
    yield recipe("POMDP.backup", pomdp.backup, v=np.array([0.0, 1.0]), h=0, free="v")
    yield recipe("POMDP.backup", pomdp.backup, v=np.ones((3, 2, 2)), h=0, free="v")
    yield recipe("POMDP.likelihood", pomdp.likelihood, y=0, a=1, h=0)
    yield recipe("POMDP.moves", pomdp.moves, h=1)
    yield recipe("POMDP.predict", pomdp.predict, b=START, a=1, h=0)
    yield recipe("POMDP.rewards", pomdp.rewards, h=1)
    yield recipe("POMDP.shows", pomdp.shows, h=0, a=1)
    yield recipe("POMDP.shows_after", pomdp.shows_after, h=0)
    yield recipe(
        "POMDP.stationary", pomdp.stationary, subject="planner", remedy="No.", free="remedy subject"
    )
    yield recipe("POMDP.with_bonus", pomdp.with_bonus, bonus=np.ones((2, 3)))
    yield recipe(
        "POMDP.with_tables", pomdp.with_tables, emission=O, initial=START, free="emission initial"
    )
    yield from reading(
        "POMDP", pomdp, *["horizon", "is_stationary", "rewards_by_observation", "sizes", "spaces"]
    )
    yield record("Stationary", Stationary, **pomdp.stationary()._asdict())
    yield from reading("Stationary", pomdp.stationary(), "horizon", "pomdp")
    counts = things.counts()
    yield record("Counts", Counts, transition=counts.transition, emission=counts.emission)
    yield recipe("Counts.add", counts.add, episode=one)
    yield recipe("Counts.of", Counts.of, episodes=episodes, model=tiger)
    yield recipe("Counts.zero", Counts.zero, model=tiger)
    yield from reading("Counts", counts, "state_action", "visits")
    trajectory = Trajectory(one.observations, one.actions)
    yield record("Trajectory", Trajectory, observations=one.observations, actions=one.actions)
    yield record("Episode", Episode, trajectory=trajectory, states=one.states)
    yield recipe(
        "Episode.of",
        Episode.of,
        observations=one.observations,
        actions=one.actions,
        states=one.states,
        model=tiger,
        id="patient 1",
        ended="horizon",
        free="id states",
    )
    yield recipe(
        "Episode.of",
        Episode.of,
        observations=["growl left", "growl left"],
        actions=["listen", "listen"],
        states=["left", "left", "left"],
        model=tiger,
        rewards=np.array([0.5, 0.5]),
        labels=np.array([0, 0, 0]),
        free="rewards labels",
    )
    yield from reading("Episode", one, "actions", "observations")
    columns = {
        "observations": np.array([[0, 1], [1, 1]]),
        "actions": np.array([[1, 0], [0, 0]]),
        "states": np.array([[0, 0, 1], [1, 0, 0]]),
    }
    yield recipe(
        "Episodes",
        Episodes,
        **columns,
        revealed=np.ones((2, 3), bool),
        rewards=np.zeros((2, 2)),
        labels=np.zeros((2, 3)),
        length=np.array([2, 2]),
        ended="horizon",
        ids=["one", "two"],
        behaviour="a nurse",
        free="ids behaviour observations actions states rewards labels",
    )
    yield recipe("Episodes.concatenate", Episodes.concatenate, parts=[episodes, episodes])
    yield recipe("Episodes.of", Episodes.of, data=episodes, model=tiger)
    yield recipe("Episodes.of", Episodes.of, data=[one, one], model=tiger.homdp)
    yield recipe(
        "Episodes.require_complete", episodes.require_complete, subject="me", free="subject"
    )
    yield recipe(
        "Episodes.require_revealed", episodes.require_revealed, subject="me", free="subject"
    )
    yield recipe("Episodes.same_as", episodes.same_as, other=episodes)
    yield from reading("Episodes", episodes, *["complete", "full_length", "horizon", "steps"])
    yield record("Problem", Problem, where="a", got="b", expected="c")


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
    yield recipe("GraphPolicy.load", GraphPolicy.load, path=things.saved_policy())
    yield recipe("GraphPolicy.named", policy.named, model=tiger)
    yield recipe("GraphPolicy.save", policy.save, path=things.folder() / "again.npz")
    yield recipe("uniform_policy", uniform_policy, model=tiger)
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
        free="planner statistics",
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
    yield recipe("Posterior.update", belief.update, data=things.episodes(), key=None)
    yield recipe("Posterior.update", belief.update, data=things.counts(), key=KEY)
    yield recipe("Posterior.worlds", belief.worlds, key=KEY, n=2)
    yield from reading(
        "Posterior", belief, *["counts", "dataset", "mean", "site_means", "variance"]
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
        foresight=False,
        compiled=False,
        progress=False,
        simulations=10,
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
    )
    yield record("Mixture", Mixture, run=run)
    yield recipe("Mixture.draw", run.mixture.draw, key=KEY)
    yield from reading("Mixture", run.mixture, "value")
    yield recipe("Run.planned_at", run.planned_at, index=1)
    yield recipe("Run.policy_at", run.policy_at, index=1)
    yield recipe("Run.resume", run.resume, stop_after=3)
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
            "mixture",
            "model_name",
            "optimistic",
            "optimum",
            "played",
            "policy",
            "posterior",
            "regret",
        ],
        *["returns", "values", "was_optimistic"],
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
