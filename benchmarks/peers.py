"""Episodes and CPU seconds until policies are good: our rules and algorithms of other packages.

    python benchmarks/peers.py [--problems tiger lock] [--learners quantile_backup PPO] [--seeds 5]
        [--episodes 10000] [--out peers.json]

Needs the extra `benchmark`. A learner has arrived at the first evaluation from which the exact
value of its policy stays within 5% of the optimum, as a share of the range between the uniform
policy and the optimum. Learners of Stable-Baselines3 stop after PATIENCE evaluations in a row
within 5%; ours run for RULES_STOP episodes. Evaluation is not counted in CPU seconds, compilation
is.

- quantile_backup: our rule, with the declared prior and with a flat one; states are revealed after
  each episode, rewards are known.
- PPO: Stable-Baselines3, with the whole history as its observation.
- RecurrentPPO: sb3-contrib, with the observation and the last action; an LSTM remembers the rest.
  Both see the reward of every step, which our rules do not, but never the states. What is evaluated
  is the most probable action after each history, not the random policy used to explore.
- POUCT: pomdp-py's planner, which knows the model. It does not learn: the table shows how much of
  the range it reaches with SIMULATIONS simulations per action.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from other_planners import PouctPolicy
from rich.console import Console
from rich.table import Table

from homdp_ppl import World, evaluate, explorers, learn, models, uniform_policy
from homdp_ppl.gym import HistoryObservation, HOMDPEnv
from homdp_ppl.models.flat import flat_table
from homdp_ppl.planners import history_tree

PROBLEMS = {
    "tiger": {},
    "tiger_listen": {"horizon": 4},
    "lock": {},
    "screening": {"hierarchy": False, "horizon": 3},
}
NEAR = 0.05  # of the range between the uniform policy and the optimum
PATIENCE = 10
RULES_STOP = 500
SIMULATIONS = 1000
ENVIRONMENTS = 8
BATCH = 32  # steps of each environment between updates
TUNING = {"learning_rate": 1e-3, "ent_coef": 0.01, "gamma": 1.0, "batch_size": 64, "n_epochs": 10}

Arrival = tuple[int | None, float, float]  # episodes, CPU seconds, last share of the range


class Range:
    """Turns exact values of policies into shares of the range from uniform (0) to optimal (1)."""

    def __init__(self, world: World) -> None:
        self.pomdp = world.pomdp
        self.low = evaluate(uniform_policy(world), self.pomdp)
        self.high = history_tree()(self.pomdp).value

    def share(self, value: float) -> float:
        """The share of the range that a value reaches."""
        return (value - self.low) / (self.high - self.low)


def rule(world: World, seed: int, episodes: int) -> Arrival:
    """Our rule with the prior of the declaration of the world."""
    start, scale = time.process_time(), Range(world)
    run = learn(world, explorers.quantile_backup(), history_tree(), RULES_STOP, seed)
    shares = (np.asarray(run.values) - scale.low) / (scale.high - scale.low)
    far = np.flatnonzero(shares < 1 - NEAR)
    arrived = int(far[-1]) + 1 if len(far) else 0
    seconds = time.process_time() - start
    return (arrived if arrived < RULES_STOP else None), seconds, float(shares[-1])


def rule_flat(world: World, seed: int, episodes: int) -> Arrival:
    """Our rule with a flat prior on every row: a learner who knows no structure."""
    return rule(flat_table(world, 1.0, 1.0), seed, episodes)


class LastAction(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observations with the last action, both as one-hot vectors."""

    def __init__(self, env: HOMDPEnv) -> None:
        super().__init__(env)
        self.sizes = len(env.spaces.observations), len(env.spaces.actions)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (sum(self.sizes),), np.float32)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Start an episode without a last action."""
        seen, info = self.env.reset(**options)
        return vectors(np.array([seen]), None, self.sizes)[0], info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action and put it next to the observation."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        both = vectors(np.array([seen]), np.array([action]), self.sizes)[0]
        return both, reward, terminated, truncated, info


def vectors(observations: Any, actions: Any, sizes: tuple[int, int]) -> Any:
    """What an LSTM sees at one step of many histories, (N, Y + A)."""
    last = np.zeros((len(observations), sizes[1]))
    if actions is not None:
        last = np.eye(sizes[1])[actions]
    return np.concatenate([np.eye(sizes[0])[observations], last], axis=1).astype(np.float32)


class Recurrent:
    """The most probable actions of RecurrentPPO; the LSTM reads each history from its start."""

    def __init__(self, model: Any, sizes: tuple[int, int]) -> None:
        self._model, self._sizes = model, sizes

    def act(self, observations: Any, actions: Any) -> Any:
        """Probabilities of the next action after one history."""
        return self.act_batch(np.asarray(observations)[None], np.asarray(actions, int)[None])[0]

    def act_batch(self, observations: Any, actions: Any) -> Any:
        """Probabilities of the next actions after many histories of the same length."""
        state, chosen = None, np.zeros(len(observations), dtype=int)
        for h in range(observations.shape[1]):
            seen = vectors(observations[:, h], actions[:, h - 1] if h else None, self._sizes)
            starts = np.full(len(seen), h == 0)
            chosen, state = self._model.predict(seen, state, starts, deterministic=True)
        return np.eye(self._sizes[1])[chosen]


def train(model: Any, policy: Any, world: World, episodes: int) -> Arrival:
    """Train in batches; evaluate exactly after each of them, until the policy stays good."""
    scale, spent, good, first, share = Range(world), 0.0, 0, None, 0.0
    horizon = world.spaces.horizon
    steps = 0
    while steps < episodes * horizon:
        start = time.process_time()
        steps += ENVIRONMENTS * BATCH
        model.learn(ENVIRONMENTS * BATCH, reset_num_timesteps=False)
        spent += time.process_time() - start
        share = scale.share(evaluate(policy, world.pomdp))
        if share < 1 - NEAR:
            good, first = 0, None
            continue
        good += 1
        first = first or (steps // horizon, spent)
        if good == PATIENCE:
            return *first, share
    return None, spent, share


def ppo(world: World, seed: int, episodes: int) -> Arrival:
    """PPO of Stable-Baselines3 on the whole history."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)

    def made() -> HistoryObservation:
        return HistoryObservation(HOMDPEnv(world, per_step=True))

    envs = make_vec_env(made, ENVIRONMENTS, seed=seed)
    model = PPO("MlpPolicy", envs, n_steps=BATCH, seed=seed, device="cpu", **TUNING)

    def chosen(seen: Any) -> Any:
        actions, _ = model.predict(seen, deterministic=True)
        return np.eye(len(world.spaces.actions))[actions]

    return train(model, made().policy(chosen), world, episodes)


def recurrent_ppo(world: World, seed: int, episodes: int) -> Arrival:
    """RecurrentPPO of sb3-contrib."""
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)

    def made() -> LastAction:
        return LastAction(HOMDPEnv(world, per_step=True))

    envs = make_vec_env(made, ENVIRONMENTS, seed=seed)
    small = {"lstm_hidden_size": 32}
    model = RecurrentPPO(
        "MlpLstmPolicy",
        envs,
        n_steps=BATCH,
        seed=seed,
        device="cpu",
        policy_kwargs=small,
        **TUNING,
    )
    return train(model, Recurrent(model, made().sizes), world, episodes)


def pouct(world: World, seed: int, episodes: int) -> Arrival:
    """POUCT of pomdp-py with the true model: it needs no episodes."""
    start = time.process_time()
    value = evaluate(PouctPolicy(world.pomdp, SIMULATIONS, seed), world.pomdp)
    share = Range(world).share(value)
    return (0 if share >= 1 - NEAR else None), time.process_time() - start, share


LEARNERS: dict[str, Callable[[World, int, int], Arrival]] = {
    "quantile_backup, declared": rule,
    "quantile_backup, flat": rule_flat,
    "PPO": ppo,
    "RecurrentPPO": recurrent_ppo,
    "POUCT, known model": pouct,
}


def main() -> None:
    """Measure, show a table, and save the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    table = Table("problem", "learner", "episodes", "CPU seconds", "share of the range at the end")
    rows = []
    for problem in options.problems:
        world = models.load(problem, **PROBLEMS[problem])
        for name in options.learners:
            found = [LEARNERS[name](world, seed, options.episodes) for seed in range(options.seeds)]
            rows.append({"problem": problem, "learner": name, "arrivals": found})
            table.add_row(problem, name, *cells(found))
            Console(width=140).print(problem, name, *cells(found), sep="; ")
            if options.out is not None:
                options.out.write_text(json.dumps(rows, indent=1) + "\n")
    Console(width=140).print(table)


def cells(found: list[Arrival]) -> tuple[str, str, str]:
    """The numbers of all seeds as text."""
    episodes = [f"{n:,}" if n is not None else "never" for n, _, _ in found]
    return (
        ", ".join(episodes),
        ", ".join(f"{seconds:.1f}" for _, seconds, _ in found),
        ", ".join(f"{share:.0%}" for _, _, share in found),
    )


if __name__ == "__main__":
    main()
