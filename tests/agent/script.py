"""A script of calls that may be repeated from the start after a crash.

Run as a module, it plays the script in the directory given on the command line. Before each round,
it prints "ready" and waits for a line.
"""

import sys
from functools import cache

import numpy as np

from homdp_ppl import Agent, explorers, models
from homdp_ppl.planners import history_tree

MODEL = {"horizon": 3}


@cache
def world():
    return models.load("tiger", **MODEL)


def agent_at(path, rule="posterior_sampling"):
    made = {
        "posterior_sampling": explorers.posterior_sampling,
        "tight": explorers.tight,
        "hop_v": lambda: explorers.hop_v(
            [world()], [world().homdp.at(accuracy=p) for p in (0.6, 0.85)], delta=0.5
        ),
    }
    K = None if rule == "posterior_sampling" else 1000
    return Agent(world().homdp, made[rule](), history_tree(), path, seed=4, episodes=K)


def observation(truth, generator, x, previous, h):
    row = truth.pomdp.shows(h, previous)[x]
    return int(generator.choice(len(row), p=row))


class Player:
    """Plays one episode in the tiger problem; all its random numbers depend on its name."""

    def __init__(self, agent, name, truth):
        self._agent, self._name, self._truth = agent, name, truth
        self._generator = np.random.default_rng([ord(letter) for letter in name])
        known = name in {*agent.status.open, *agent.status.pending} or self._ended()
        self._live = agent.episode(name) if known else agent.begin(name)
        initial = truth.pomdp.initial
        self.states = [int(self._generator.choice(len(initial), p=initial))]
        self.actions = []

    def _ended(self):
        return self._name in self._agent._keeper.ledger

    def step(self):
        """Show the next observation and move to the next state."""
        h, x = len(self.actions), self.states[-1]
        previous = self.actions[-1] if self.actions else None
        y = observation(self._truth, self._generator, x, previous, h)
        action = self._live.act(y, step=h + 1)
        self.actions.append(self._truth.spaces.actions.index(action))
        row = self._truth.pomdp.moves(h)[x, self.actions[-1]]
        self.states.append(int(self._generator.choice(len(row), p=row)))


def play_script(agent, rounds=4, prefix="", width=3, wait=lambda: None):
    """Play rounds of ``width`` interleaved episodes; returns the actions of each episode."""
    truth, actions = world(), {}
    waiting = []
    for r in range(rounds):
        wait()
        names = [f"{prefix}r{r}e{k}" for k in range(width)]
        players = {name: Player(agent, name, truth) for name in names}
        for h in range(truth.spaces.horizon):
            for name in names[:: 1 if h % 2 else -1]:
                players[name].step()
        actions |= {name: player.actions for name, player in players.items()}
        waiting += [(name, player.states) for name, player in players.items()]
        if r % 2:  # late, and in reverse order
            for name, states in waiting[::-1]:
                if name.endswith("r1e1"):
                    agent.abandon(name, "lost")
                    continue
                if name in agent.pending:  # otherwise, a repeated script would undo corrections
                    agent.reveal(name, {1: states[0]})
                    agent.reveal(name, states)
            first, states = waiting[0]
            agent.reveal(first, [1 - x for x in states])  # a correction
            waiting = []
    return actions


def wait_for_line():
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    path, rule, rounds, width, prefix = sys.argv[1:]
    play_script(agent_at(path, rule), int(rounds), prefix, int(width), wait_for_line)
    print("done", flush=True)
