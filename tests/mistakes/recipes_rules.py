"""Valid calls of rules, planners, models, formats and environments."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from homdp_ppl import explorers, formats, gym, models, planners, write_pomdp
from homdp_ppl.core.bound import Options
from homdp_ppl.explorers import About, Bound, Deployment, Explorer, Objective, Pairs, Proposal
from homdp_ppl.planners import RootBounds, Support, remaining_steps
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record

KEY = things.KEY


def rules() -> Iterator[Recipe]:
    """Exploration rules."""
    tiger = things.tiger()
    T, O = tiger.pomdp.moves(0), tiger.pomdp.shows(0)  # noqa: E741
    state = explorers.init_belief(tiger.homdp, None)
    yield recipe(
        "explorers.About",
        About,
        name="mine",
        options={"weight": 0.5},
        guarantee="none",
        uses_prior=False,
        needs_episodes=False,
        note="an example",
        coverage=0.9,
        free="note options",
    )
    yield from reading("explorers.About", About("mine"), "label", "soundness")
    yield recipe("explorers.Bound", Bound, function=sorted, options=Options(reverse=True))
    yield recipe("explorers.bind", explorers.bind, function=sorted, reverse=True, free="reverse")
    yield recipe(
        "explorers.Deployment",
        Deployment,
        replan="doubled",
        random_actions=0.1,
        uniform_at_each_step=False,
    )
    yield recipe(
        "explorers.Deployment.episodes_per_round",
        Deployment(uniform_at_each_step=True).episodes_per_round,
        horizon=3,
    )
    greedy = explorers.greedy()
    yield recipe(
        "explorers.Explorer",
        Explorer,
        about=About("mine"),
        init=greedy.init,
        propose=greedy.propose,
        update=greedy.update,
        objective=Objective(),
        deployment=Deployment(),
    )
    yield from reading("explorers.Explorer", greedy, "name", "soundness")
    yield recipe("explorers.Explorer.init", explorers.tight().init, homdp=tiger.homdp, episodes=100)
    yield recipe(
        "explorers.Explorer.update", greedy.update, state=state, episode=things.episodes()[0]
    )
    yield recipe(
        "explorers.Objective",
        Objective,
        root=greedy.objective.root,
        support=greedy.objective.support,
        caps=remaining_steps,
        candidates=3,
        pick=2,
        exact=False,
    )
    yield recipe("explorers.Objective.root", Objective().root, homdp=tiger.homdp, free="homdp")
    yield recipe("explorers.Objective.support", Objective().support, homdp=tiger.homdp)
    alive = np.array([True, True])
    pairs = Pairs(T[None], np.stack([O, O]), alive[:1], alive, tiger.pomdp)
    yield record("explorers.Pairs", Pairs, **pairs._asdict())
    yield recipe("explorers.Pairs.model", pairs.model, t=0, o=1)
    yield record("explorers.Proposal", Proposal, models=tiger.pomdp)
    yield from reading("explorers.State", state, "only_counts", "visits")
    yield recipe(
        "explorers.candidates", explorers.candidates, homdp=things.gaussian().homdp, n=2, key=KEY
    )
    yield recipe("explorers.draw_models", explorers.draw_models, key=KEY, state=state, n=3)
    yield recipe("explorers.init_belief", explorers.init_belief, homdp=tiger.homdp, episodes=3)
    yield recipe("explorers.mean_model", explorers.mean_model, state=state)
    yield recipe(
        "explorers.update_belief",
        explorers.update_belief,
        state=state,
        episode=things.episodes()[0],
    )
    yield recipe(
        "explorers.low_rank",
        explorers.low_rank,
        features=np.array([[[1.0, 0.0]], [[0.0, 1.0]]]),
        measures=np.array([[[0.9, 0.1], [0.2, 0.8]]]),
    )
    yield recipe("explorers.epsilon_greedy", explorers.epsilon_greedy, epsilon=0.1, known=True)
    yield recipe("explorers.greedy", explorers.greedy, known=True)
    yield recipe("explorers.hop_b", explorers.hop_b, delta=0.1, scale=0.5, known=False)
    yield recipe(
        "explorers.hop_b_class",
        explorers.hop_b_class,
        emissions=np.stack([O, O]),
        delta=0.1,
        scale=0.5,
        known=True,
    )
    yield recipe("explorers.hop_b_class", explorers.hop_b_class, emissions=[tiger, tiger])
    yield recipe(
        "explorers.hop_v",
        explorers.hop_v,
        transitions=T[None],
        emissions=np.stack([O, O]),
        delta=0.1,
        mass=0.5,
    )
    yield recipe("explorers.hop_v", explorers.hop_v, transitions=[tiger], emissions=[tiger])
    yield recipe("explorers.oracle", explorers.oracle, world=tiger)
    yield recipe("explorers.posterior_sampling", explorers.posterior_sampling)
    yield recipe("explorers.quantile_backup", explorers.quantile_backup, z=1.5, unvisited=2.0)
    yield recipe("explorers.quantile_bonus", explorers.quantile_bonus, delta=0.1, bound=False)
    yield recipe("explorers.tight", explorers.tight, delta=0.1, known=True)
    yield recipe("explorers.anytime", explorers.anytime, delta=0.1, mixture="jeffreys", known=True)
    yield recipe("explorers.uniform", explorers.uniform)
    yield recipe("explorers.value_quantile", explorers.value_quantile, q=0.9, draws=5)
    for name in ("replan_every_episode", "replan_on_doubling", "replan_once"):
        yield recipe(f"explorers.{name}", getattr(explorers, name), rule=explorers.tight())
    yield recipe(
        "explorers.with_random_actions",
        explorers.with_random_actions,
        rule=explorers.tight(),
        share=0.05,
    )


def planning() -> Iterator[Recipe]:
    """Planners, their factories and what they return."""
    tiger, gaussian = things.tiger(), things.gaussian()
    support = Support.of(tiger.pomdp)
    yield recipe("planners.alpha_vectors", planners.alpha_vectors, tolerance=1e-9, max_vectors=1000)
    yield recipe("planners.auto", planners.auto, gap=0.01)
    yield recipe("planners.auto", planners.auto, relative_gap=0.01)
    yield recipe(
        "planners.bounded_search",
        planners.bounded_search,
        gap=0.01,
        time_limit=5.0,
        free="time_limit",
    )
    yield recipe(
        "planners.history_tree", planners.history_tree, max_nodes=1000, caps=remaining_steps
    )
    graph = planners.history_graph(tiger)
    yield recipe("planners.history_tree", planners.history_tree, graph=graph, free="graph")
    yield recipe("planners.history_graph", planners.history_graph, model=tiger, horizon=2)
    yield recipe("planners.history_graph", planners.history_graph, model=support, horizon=2)
    yield recipe(
        "planners.particle_tree",
        planners.particle_tree,
        simulations=20,
        seed=0,
        particles=50,
        tree_particles=16,
        exploration=0.5,
        widening=(4.0, 0.35),
        rollouts=2,
        episodes=2,
    )
    yield recipe("planners.particle_tree", planners.particle_tree, seconds=0.1)
    yield recipe("planners.quantised", planners.quantised, gap=0.1, planner=None, max_cells=16)
    for name in ("history_tree", "alpha_vectors", "bounded_search", "auto"):
        yield recipe(f"{name}()", _pomdp(getattr(planners, name)()), pomdp=tiger.pomdp)
    for name in ("history_tree", "auto"):
        call, allowed = _allowed(getattr(planners, name)()), things.only_listening
        yield recipe(f"{name}()", call, pomdp=tiger.pomdp, allowed=allowed)
    yield recipe("quantised()", _world(planners.quantised(gap=0.1)), world=gaussian)
    yield recipe("particle_tree()", _world(planners.particle_tree(simulations=5)), world=tiger)
    yield recipe("planners.count_histories", planners.count_histories, support=support, horizon=3)
    yield recipe(
        "planners.plan_on_cells",
        planners.plan_on_cells,
        world=gaussian,
        edges=np.array([-1.0, 0.0]),
    )
    yield recipe(
        "planners.remaining_steps", remaining_steps, parameters=None, horizon=3, free="parameters"
    )
    yield recipe("planners.root_bounds", planners.root_bounds, pomdp=tiger.pomdp)
    yield record("planners.RootBounds", RootBounds, blind=1.0, fast_informed=2.0, qmdp=2.0, mdp=3.0)
    yield record("planners.Support", Support, **support._asdict())
    yield recipe("planners.Support.covers", support.covers, other=support)
    yield recipe("planners.Support.first_shows", support.first_shows)
    yield recipe("planners.Support.moves", support.moves, h=0)
    yield recipe("planners.Support.of", Support.of, model=tiger.pomdp)
    yield recipe("planners.Support.shows_after", support.shows_after, h=0)
    yield from reading("planners.Support", support, "complete", "key", "mixing", "sizes")
    online = planners.particle_tree(simulations=5)(tiger).policy
    for name in ("act", "belief", "search"):
        yield recipe(
            f"planners.OnlinePolicy.{name}",
            getattr(online, name),
            observations=np.array([0]),
            actions=np.array([], dtype=int),
        )
    yield from reading("planners.OnlinePolicy", online, "statistics")


def _pomdp(planner):
    return lambda pomdp: planner(pomdp)


def _allowed(planner):
    return lambda pomdp, allowed: planner(pomdp, allowed=allowed)


def _world(planner):
    return lambda world: planner(world)


def files() -> Iterator[Recipe]:
    """Models of the zoo, model files, environments."""
    tiger, path = things.tiger(), things.pomdp_file()
    file = formats.read_file(path)
    yield recipe("models.load", models.load, name="tiger", horizon=2, accuracy=0.8)
    yield recipe("models.load", models.load, name="lock", length=2, dials=2)
    yield recipe(
        "models.load",
        models.load,
        name="random",
        states=3,
        observations=2,
        actions=2,
        horizon=2,
        seed=1,
    )
    yield recipe("models.story", models.story, name="tiger")
    yield recipe("read_pomdp", formats.read_pomdp, path=path, horizon=2, prior=1.0)
    yield recipe("formats.read_file", formats.read_file, path=path)
    yield recipe(
        "write_pomdp", write_pomdp, model=tiger, path=things.folder() / "out.POMDP", discount=0.9
    )
    yield recipe(
        "formats.write_vectors",
        formats.write_vectors,
        plan=planners.history_tree()(tiger.pomdp),
        path=things.folder() / "out.alpha",
        step=1,
    )
    parts = {f: getattr(file, f) for f in file.__dataclass_fields__}
    yield record("formats.PomdpFile", formats.PomdpFile, **parts)
    yield recipe("formats.PomdpFile.world", file.world, horizon=2, prior=1.0)
    yield from reading("formats.PomdpFile", file, "action_matters")
    env = gym.HOMDPEnv(tiger, render_mode="ansi")
    env.reset(seed=0)
    yield recipe("gym.HOMDPEnv", gym.HOMDPEnv, world=tiger, per_step=True, render_mode="ansi")
    yield recipe("gym.HOMDPEnv.render", env.render)
    yield recipe("gym.HOMDPEnv.reset", env.reset, seed=0, options=None)
    yield recipe("gym.HOMDPEnv.step", _step, action=1)
    yield recipe(
        "gym.episodes_from",
        gym.episodes_from,
        env=gym.HOMDPEnv(tiger),
        policy="uniform",
        n=2,
        seed=0,
        model=tiger,
        latent="latent_states",
        patient="n",
    )


def _step(action):
    env = gym.HOMDPEnv(things.tiger())
    env.reset(seed=0)
    return env.step(action)
