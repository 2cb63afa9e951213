"""Speed of agents with many events: act, reveal and open, with the time of fsync apart.

Run ``python benchmarks/agent.py [events]``; the default is 100,000 events.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from homdp_ppl import Agent, explorers, models
from homdp_ppl.agent.events import Act, Begin, Reveal, to_block
from homdp_ppl.planners import history_tree
from homdp_ppl.storage.whole_journal import rewrite

EVENTS = 100_000
REPEATS = 200

WORLD = models.load("tiger", horizon=4)


def opened(path: Path) -> Agent:
    """The agent. Its rule plans again only when a count has doubled."""
    return Agent(WORLD.homdp, explorers.tight(), history_tree(), path, episodes=10**6)


def fill(path: Path, events: int) -> None:
    """Create an agent with a number of events, as if its episodes had been played."""
    with opened(path) as agent:
        agent.begin("first")
        blocks = agent._keeper.book.blocks()  # with the first decision
        made = agent._keeper.ledger.decisions[0]
        facts = agent._keeper.book.description
        horizon = WORLD.spaces.horizon
        generator = np.random.default_rng(0)
        visits = np.zeros_like(made.visits)
        ordinal = 0
        while len(blocks) < events:
            if ordinal:
                blocks.append(to_block(Begin(f"e{ordinal}", 0)))
            x = int(generator.integers(2))
            for h in range(1, horizon + 1):
                y = x if generator.random() < 0.85 else 1 - x
                blocks.append(to_block(Act(ordinal, h, y, 0)))
                visits[x, 0] += 1
            blocks.append(to_block(Reveal(ordinal, dict.fromkeys(range(1, horizon + 2), x))))
            ordinal += 1
        # a decision at the counts so far, so that the next episode does not plan again
        last = Begin("last", 1, made=made._replace(visits=visits))
        blocks.append(to_block(last))
    rewrite(path / "agent.journal", facts, blocks)


def measure(agent: Agent) -> dict[str, list[float]]:
    """Seconds per call, and the seconds of fsync inside each of them."""
    synced, plain = [0.0], os.fsync
    found: dict[str, list[float]] = {"begin": [], "act": [], "reveal": [], "fsync": []}

    def timed(handle: int) -> None:
        start = time.perf_counter()
        plain(handle)
        synced[0] += time.perf_counter() - start

    def call(name: str, function, *arguments):
        synced[0] = 0.0
        start = time.perf_counter()
        result = function(*arguments)
        found[name].append(time.perf_counter() - start - synced[0])
        found["fsync"].append(synced[0])
        return result

    os.fsync = timed
    try:
        for _ in range(REPEATS):
            episode = call("begin", agent.begin)
            for _ in range(WORLD.spaces.horizon):
                call("act", episode.act, 0)
            states = [0] * (WORLD.spaces.horizon + 1)
            actions = episode.trajectory.actions
            if actions.any():  # the tiger moves when a door is opened
                states = states[: 1 + int(np.flatnonzero(actions)[0])] * 9
                states = states[: WORLD.spaces.horizon + 1]
            call("reveal", agent.reveal, episode.id, states)
    finally:
        os.fsync = plain
    return found


def main() -> None:
    """Print medians in milliseconds."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "agent")
        fill(path, events)
        size = (path / "agent.journal").stat().st_size
        start, busy = time.perf_counter(), time.process_time()
        agent = opened(path)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        opening = f"opened in {seconds:.2f} s ({busy:.2f} s of processor time)"
        print(f"{agent.status.events:,} events, {size / 1e6:.1f} MB, {opening}")
        measure(agent)  # compile
        for name, times in measure(agent).items():
            low, middle, high = np.quantile(times, [0.05, 0.5, 0.95]) * 1000
            print(f"{name:7} {middle:8.2f} ms  (5% to 95%: {low:.2f} to {high:.2f})")
        agent.close()


if __name__ == "__main__":
    main()
