"""The full text of one error per family, each raised by a real mistake.

All other tests assert the class and the place of errors. These tests keep the wording readable.
"""

import socket
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    HOMDP,
    Agent,
    BlindPolicy,
    Counts,
    DataError,
    DeclarationError,
    Episode,
    Episodes,
    GraphPolicy,
    HOMDPError,
    InferenceError,
    ParameterError,
    PlanningError,
    PolicyError,
    Spaces,
    SpacesError,
    StorageError,
    evaluate,
    explorers,
    learn,
    models,
    offline,
    posterior,
    read_pomdp,
    tabular,
)
from homdp_ppl.agent.reveals import ExcludedError
from homdp_ppl.errors import TracedError
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Sampling
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.lock import DirectoryLock, LockedError
from homdp_ppl.storage.records import DamageError
from tests.worlds import world

LAMP = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)


def untyped(value: Any) -> Any:
    """A value of the wrong type, hidden from mypy."""
    return value


def coin():
    """A declaration with one unknown table."""
    return tabular(
        T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    )


class BlackBox:
    """An external system that learn cannot simulate."""


def rows_that_do_not_sum_to_one():
    tabular(T=[[[0.5, 0.4]], [[0, 1]]], O=np.eye(2), initial=[1, 0], reward=[[0], [1]], horizon=2)


def misspelt_names():
    Episode.of(["dark", "bright"], ["press", "wait"], ["off", "onn", None], LAMP)


def act_again():
    """Repeat a request with another observation."""
    agent = Agent(models.load("tiger", horizon=2).homdp, explorers.greedy(), history_tree())
    agent.begin("p 1").act("growl left")
    agent.episode("p 1").act("growl right", step=1)


def read_rows(episode):
    """Read a log with a misspelt name; its episodes are in the column "patient"."""
    rows = {"patient": [1], "step": [1], "observation": ["drak"], "action": ["wait"]}
    Episodes.from_frame(rows, LAMP, episode=episode, state=None)


def two_episodes():
    """A declaration, and two episodes of it; a state of the second is missing."""
    homdp = models.load("tiger", horizon=2).homdp
    states = np.ma.array([[0, 0, 0], [1, 1, 1]], mask=[[0, 0, 0], [0, 1, 0]])
    return homdp, Episodes(np.array([[0, 0], [1, 1]]), np.array([[0, 0], [0, 1]]), states)


def evaluate_with_another_behaviour():
    homdp, log = two_episodes()
    listen = BlindPolicy(np.array([[1.0, 0.0, 0.0]] * 2))
    offline.evaluate(homdp, log, listen, behaviour=listen)


def learn_in(something):
    learn(something, explorers.greedy(), history_tree(), 5)


def trace_a_rule():
    jax.jit(lambda share: explorers.with_random_actions(explorers.tight(), share))(0.1)


MISTAKES = {
    "rows that do not sum to one": (
        rows_that_do_not_sum_to_one,
        DeclarationError,
        "tabular: 1 problem\n"
        "  1. transition[x0, a0]: got a row that sums to 0.9; expected a sum of 1. Normalise the "
        "row.",
    ),
    "tables of real-valued spaces": (
        lambda: models.load("light_dark").pomdp,
        SpacesError,
        "light_dark: 1 problem\n"
        "  1. pomdp: got states in R, observations in R; expected finitely many states and "
        "observations. Real-valued spaces have no tables. Plan with planners.quantised() or "
        "planners.particle_tree(); infer with posterior(homdp, episodes).",
    ),
    "an unknown site": (
        lambda: coin().at(bias=0.7, O=[[0.5, 0.5]]),
        ParameterError,
        "parameters of tabular: 1 problem\n  1. unknown site 'bias'; this model has: O",
    ),
    "several invalid arguments": (
        lambda: explorers.hop_b(delta=2, scale=-1.0),
        ParameterError,
        "hop_b: 2 problems\n"
        "  1. delta: got 2; expected a probability in (0, 1)\n"
        "  2. scale: got -1.0; expected a non-negative number",
    ),
    "learn with a black box": (
        lambda: learn_in(BlackBox()),
        ParameterError,
        "learn: 1 problem\n"
        "  1. world: got a BlackBox; expected a World. learn simulates a World: a declaration with "
        "fixed parameters, homdp.at(...). To learn in an external system, use "
        "Agent(homdp, explorer, planner).",
    ),
    "learn with a declaration": (
        lambda: learn_in(world("tiger").homdp),
        ParameterError,
        "learn: 1 problem\n"
        "  1. world: got a HOMDP; expected a World. Fix the parameters of a declaration: "
        "homdp.at(...).",
    ),
    "a rule inside jit": (
        trace_a_rule,
        TracedError,
        "with_random_actions: 1 problem\n"
        "  1. share: got a traced JAX value; expected a number. This function cannot be traced: "
        "call it outside of jit, vmap and grad.",
    ),
    "misspelt names": (
        misspelt_names,
        DataError,
        "episode: 2 problems\n"
        "  1. observations[step 2]: unknown name 'bright'; this space has: dark, light. Did you "
        "mean 'light'?\n"
        "  2. states[step 2]: unknown name 'onn'; this space has: off, on. Did you mean 'on'?",
    ),
    "another observation in a retry": (
        act_again,
        DataError,
        "act: 1 problem\n"
        "  1. observation[episode 'p 1']: got another observation than before at step 1; expected "
        "the same observation in a retry",
    ),
    "a misspelt name in a log": (
        lambda: read_rows("patient"),
        DataError,
        "from_frame: 1 problem\n"
        "  1. observation[row 0]: unknown name 'drak'; this space has: dark, light. Did you mean "
        "'dark'?",
    ),
    "an unknown column of a log": (
        lambda: read_rows("episode"),
        DataError,
        "from_frame: 1 problem\n"
        "  1. episode: got no column 'episode'; expected one of the columns: patient, step, "
        "observation, action. Name the column: episode=...",
    ),
    "a behaviour that did not act": (
        evaluate_with_another_behaviour,
        DataError,
        "behaviour: 1 problem\n"
        "  1. behaviour[episode 1, step 2]: got probability 0 for 1 recorded action; expected a "
        "policy that takes every recorded action with positive probability. Pass the policy that "
        "acted, or None to estimate it from the log.",
    ),
    "counts of episodes with missing states": (
        lambda: HOMDP.counts(*two_episodes()),
        DataError,
        "counts: 1 problem\n"
        "  1. states[first in episode 1, step 2]: got 1 missing in 1 of 2 episodes; expected all "
        "states revealed. Counts of the revealed steps alone are biased if what is revealed "
        "depends on what was seen. posterior(homdp, episodes) sums over missing states.",
    ),
    "a planner that needs all states": (
        lambda: offline.bonus_plan(*two_episodes()),
        DataError,
        "offline.bonus_plan: 1 problem\n"
        "  1. states[first in episode 1, step 2]: got 1 missing in 1 of 2 episodes; expected all "
        "states revealed. Use a planner that needs only the posterior, such as "
        "value_quantile_plan.",
    ),
    "too few draws": (
        lambda: posterior(coin(), Counts.zero(coin()), sampling=Sampling(draws=2)),
        InferenceError,
        "posterior: 1 problem\n  1. sampling.draws: got 2; expected at least 4",
    ),
    "a world instead of its arrays": (
        lambda: history_tree()(untyped(world("tiger"))),
        PlanningError,
        "history_tree: 1 problem\n"
        "  1. model: got a World; expected a POMDP. Pass its arrays: world.pomdp.",
    ),
    "a plan instead of its policy": (
        lambda: evaluate(untyped(history_tree()(world("tiger").pomdp)), world("tiger").pomdp),
        PolicyError,
        "policy: 1 problem\n"
        "  1. policy: got a Plan; expected an object with act(observations, actions). Pass its "
        "policy: plan.policy or run.policy.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake):
    make, error, message = MISTAKES[mistake]
    with pytest.raises(HOMDPError) as caught:
        make()
    assert type(caught.value) is error
    assert str(caught.value) == message


def test_an_invalid_memory_budget(monkeypatch):
    monkeypatch.setenv("HOMDP_MEMORY", "much")
    with pytest.raises(HOMDPError) as caught:
        Counts.zero(world("tiger"))
    assert type(caught.value) is HOMDPError
    assert str(caught.value) == (
        "HOMDP_MEMORY: 1 problem\n"
        "  1. HOMDP_MEMORY: got 'much'; expected a positive number of gigabytes, such as 4"
    )


def test_a_missing_file(tmp_path):
    path = tmp_path / "policy.npz"
    with pytest.raises(StorageError) as caught:
        GraphPolicy.load(path)
    assert str(caught.value) == (
        f"{path}: got no such file or directory; expected a policy file that can be read"
    )


def test_a_locked_directory(tmp_path):
    with DirectoryLock(tmp_path) as lock:
        with pytest.raises(LockedError) as caught, DirectoryLock(tmp_path):
            pass
        assert lock.holder is not None
        assert str(caught.value) == (
            f"{tmp_path / '.lock'}: got a lock held by process {lock.holder.pid} on host "
            f"{socket.gethostname()} since {lock.holder.since}; expected a directory that no other "
            "process uses. Wait for this process, or end it."
        )


def test_a_damaged_journal(tmp_path):
    path = tmp_path / "0.journal"
    with Journal.create(path, {"seed": 0}) as journal:
        offset = path.stat().st_size
        journal.append({"played": [0.5]}, {})
    damaged = bytearray(path.read_bytes())
    damaged[-20] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DamageError) as caught:
        Journal.open(path)
    assert str(caught.value) == (
        f"{path}[byte {offset}]: got record 1 with a wrong checksum of its content; expected an "
        "intact journal. The damaged file is kept as 0.journal.damaged-1. Intact blocks before the "
        "damage: 0."
    )


def test_a_misspelt_state_in_a_pomdp_file(tmp_path):
    path = tmp_path / "cave.POMDP"
    path.write_text("states: left right actions: go observations: dark\nT: go : lft : right 1.0")
    with pytest.raises(HOMDPError) as caught:
        read_pomdp(path, horizon=2)
    assert str(caught.value) == (
        f"{path}: 1 problem\n"
        "  1. line 2: got 'lft'; expected one of the 2 states, by name or index from 0, or *. Did "
        "you mean 'left'?"
    )


def test_an_agent_with_another_declaration(tmp_path):
    open_agent(tmp_path, horizon=2).close()
    with pytest.raises(ParameterError) as caught:
        open_agent(tmp_path, horizon=3)
    assert str(caught.value) == (
        "Agent: 1 problem\n"
        "  1. homdp: got horizon 3; expected horizon 2. Use the declaration with which the agent "
        "began, or agent.migrate(new_homdp)."
    )


def open_agent(path, horizon):
    homdp = models.load("tiger", horizon=horizon).homdp
    return Agent(homdp, explorers.greedy(), history_tree(), path=path)


def test_a_reveal_of_too_few_states():
    agent = Agent(models.load("tiger", horizon=1).homdp, explorers.greedy(), history_tree())
    agent.begin("p 1").act("growl left")
    with pytest.raises(DataError) as caught:
        agent.reveal("p 1", ["left"])
    assert str(caught.value) == (
        "reveal of 'p 1': 1 problem\n"
        "  1. states[episode 'p 1']: got 1 state; expected 2 states: one per step and the state "
        "after the last action. For some of the states, pass a dictionary: {step: state, ...}."
    )


def test_an_excluded_reveal():
    agent = Agent(models.load("tiger", horizon=1).homdp, explorers.greedy(), history_tree())
    agent.begin("p 1").act("growl left")
    with pytest.raises(DataError) as caught:
        agent.reveal("p 1", ["left", "right"])
    assert type(caught.value) is DataError  # so that its name in JSON is public
    assert str(caught.value) == (
        "reveal of 'p 1': 1 problem\n"
        "  1. data[episode 'p 1', step 1]: got transition (left, listen, right), declared "
        "impossible; expected steps that the program allows. Check that the data come from this "
        "model, and that its program allows such steps."
    )


def families(error: type[HOMDPError]) -> set[type[HOMDPError]]:
    """An error class of the library and all its subclasses."""
    found = {error} | {each for child in error.__subclasses__() for each in families(child)}
    return {each for each in found if each.__module__.startswith("homdp_ppl")}


def test_every_family_has_a_test():
    tested = {error for _, error, _ in MISTAKES.values()}
    assert families(HOMDPError) == tested | {
        HOMDPError,
        StorageError,
        LockedError,
        DamageError,
        ExcludedError,
    }
