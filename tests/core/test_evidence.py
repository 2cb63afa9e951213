"""Evidence of episodes with gaps: the forward recursion against enumeration of all hidden paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from homdp_ppl import DataError, Episodes, x64
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import Rows, log_likelihood_of_gaps
from homdp_ppl.posteriors.density import log_likelihood
from tests.declare.test_terminal import native
from tests.gaps import enumerated, tables_of, with_gaps
from tests.raising import raises
from tests.richer import RICHER, richer


def world_of(name):
    return native().draw(jax.random.key(3)) if name == "terminal" else richer(name)


def recursion(world, evidence):
    tables = tables_of(world)
    gaps = log_likelihood_of_gaps(Rows(*tables, world.homdp.form), evidence.gaps)
    return float(log_likelihood(tables, evidence.counts) + gaps)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("name", [*RICHER, "terminal"])
def test_the_recursion_equals_enumeration(name, share):
    world = world_of(name)
    episodes = with_gaps(world, 20, share)
    found = recursion(world, Evidence.of(episodes, world.homdp))
    assert np.isclose(found, enumerated(world, episodes), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [*RICHER, "terminal"])
def test_traced_and_padded_gaps_agree(name):
    world = world_of(name)
    evidence = Evidence.of(with_gaps(world, 20, 0.4), world.homdp)
    tables = tables_of(world)
    with x64():
        rows = Rows(*map(jnp.asarray, tables), world.homdp.form)
        traced = jax.jit(lambda gaps: log_likelihood_of_gaps(rows, gaps))(evidence.data[1])
    plain = log_likelihood_of_gaps(Rows(*tables, world.homdp.form), evidence.gaps)
    assert np.isclose(float(traced), float(plain), rtol=1e-12)


def late(gaps):
    return gaps._replace(seen=np.roll(gaps.seen, 1, axis=1))


def wrong_action(gaps):
    return gaps._replace(actions=np.roll(gaps.actions, 1, axis=1) % 2)


def last_forgotten(gaps):
    return gaps._replace(after=np.full_like(gaps.after, 2))


def first_forgotten(gaps):
    return gaps._replace(before=np.full_like(gaps.before, 2))


@pytest.mark.parametrize("bug", [late, wrong_action, last_forgotten, first_forgotten])
def test_planted_bugs_are_caught(bug):
    world = world_of("tables")
    episodes = with_gaps(world, 40, 0.4)
    evidence = Evidence.of(episodes, world.homdp)
    evidence.gaps = bug(evidence.gaps)
    assert abs(recursion(world, evidence) - enumerated(world, episodes)) > 1e-3


def test_an_observation_after_the_last_action_is_caught():
    """The state after the last action has no observation, also if a clue makes it part of a gap."""
    world = world_of("terminal")
    episodes = with_gaps(world, 40, 0.2)
    evidence = Evidence.of(episodes, world.homdp)
    none = len(world.homdp.observations)
    assert (evidence.gaps.seen == none).any()
    evidence.gaps = evidence.gaps._replace(seen=np.where(evidence.gaps.seen == none, 0, 0))
    assert abs(recursion(world, evidence) - enumerated(world, episodes)) > 1e-3


@pytest.mark.parametrize("name", ["start", "steps", "terminal"])
def test_evidence_of_parts_adds_up(name):
    world = world_of(name)
    one, other = with_gaps(world, 15, 0.3, seed=1), with_gaps(world, 10, 0.8, seed=2)
    whole = Evidence.of(other + one, world.homdp)
    for parts in ((one, other), (other, one)):
        added = Evidence.of(parts[0], world.homdp) + Evidence.of(parts[1], world.homdp)
        assert added.episodes == whole.episodes == 25
        assert added.steps == whole.steps
        for name, mine, theirs in zip(whole.gaps._fields, added.gaps, whole.gaps, strict=True):
            equal = jax.tree.map(np.array_equal, mine, theirs)
            assert all(jax.tree.leaves(equal)), name
        assert np.array_equal(added.counts.transition, whole.counts.transition)


def test_equal_gaps_are_stored_once():
    world = world_of("start")
    few = with_gaps(world, 5, 0.5)
    many = Episodes.concatenate([few] * 100)
    assert len(Evidence.of(many, world.homdp).gaps.number) == len(
        Evidence.of(few, world.homdp).gaps.number
    )


def test_actions_that_saw_states_are_refused():
    world = world_of("start")
    gaps = with_gaps(world, 3, 0.5)
    saw = Episodes(
        gaps.observations, gaps.actions, gaps.states, gaps.revealed, behaviour="saw states"
    )
    with raises(DataError, "behaviour"):
        Evidence.of(saw, world.homdp)
