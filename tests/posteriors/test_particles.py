"""Posteriors that follow a stream of episodes with gaps, against exact posteriors."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import (
    DataError,
    Episodes,
    Kernels,
    homdp,
    models,
    posterior,
    rollout,
    uniform_policy,
    x64,
)
from homdp_ppl.core.clues import likelihoods
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.declare.clue_likelihood import evidence_of
from homdp_ppl.posteriors import particles
from homdp_ppl.posteriors.particles import Particles, Reweighted, follow
from tests.gaps import enumerated, with_gaps
from tests.posteriors import programs
from tests.posteriors.test_gaps import grid_posterior
from tests.sensors import declared

REPLICAS = 8


def followed(model, episodes, key):
    with x64():
        state = follow(model, jax.random.fold_in(key, 10_000))
        for k in range(len(episodes)):
            new = Evidence.of(episodes[k : k + 1], model)
            state = state.update(new, jax.random.fold_in(key, k))
    return state


def scores():
    """Standardised distances of mean and spread of tiger's accuracy from the exact posterior."""
    world = models.load("tiger")
    episodes = with_gaps(world, 20, 0.3)
    mean, spread = grid_posterior(world.homdp, episodes)
    means, spreads = [], []
    for r in range(REPLICAS):
        state = followed(world.homdp, episodes, jax.random.key(r))
        drawn = state.belief.atoms.values["accuracy"]
        means.append(drawn.mean())
        spreads.append(drawn.std())
    errors = [np.std(part, ddof=1) / np.sqrt(REPLICAS) for part in (means, spreads)]
    return abs(np.mean(means) - mean) / errors[0], abs(np.mean(spreads) - spread) / errors[1]


# Student's t with 7 degrees of freedom: both limits have a false-alarm rate of 1e-4. The spread is
# allowed one more error, since that of few particles is slightly too small.
LIMITS = 7.9, 8.9


def test_particles_have_the_exact_posterior():
    mean, spread = scores()
    assert mean < LIMITS[0]
    assert spread < LIMITS[1]


def test_a_planted_bug_is_caught(monkeypatch):
    """Hidden steps that are counted four times."""
    hidden = particles.hidden_tables
    monkeypatch.setattr(
        particles,
        "hidden_tables",
        lambda *given: {name: 4 * table for name, table in hidden(*given).items()},
    )
    mean, spread = scores()
    assert mean > LIMITS[0] or spread > LIMITS[1]


def after_a_right_one(x, y, a):
    return 0.3 if y is None else jnp.where(x == y, 0.8, 0.1)


@homdp(states=2, observations=2, actions=1, horizon=4, reward=[[1.0], [0.0]])
def labelled():
    """Noisy labels, which are revealed mostly after a right observation."""
    p = numpyro.sample("accuracy", dist.Beta(4, 2))
    shows = jnp.array([[p, 1 - p], [1 - p, p]])
    moves = np.array([[[0.9, 0.1]], [[0.2, 0.8]]])
    label = np.array([[0.8, 0.2], [0.1, 0.9]])
    return Kernels([0.5, 0.5], moves, shows, label=label, revealed=after_a_right_one)


@pytest.fixture(scope="module")
def shown():
    """Episodes of ``labelled``, with mean and spread of the accuracy on a fine grid."""
    world = labelled.at(accuracy=0.6)
    episodes = rollout(jax.random.split(jax.random.key(0), 30), world, uniform_policy(world))
    grid = np.linspace(0.005, 0.995, 199)
    program = labelled.hindsight(episodes)
    with x64():
        density = jax.jit(lambda p: log_density(program, (), {}, {"accuracy": p})[0])
        log = np.array([float(density(p)) for p in grid])
    weights = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    mean = weights @ grid
    return episodes, mean, np.sqrt(weights @ (grid - mean) ** 2)


def begun(model, episodes, key):
    """Particles that start with a log of all these episodes."""
    with x64():
        return follow(model, key, evidence_of(model, episodes))


def labelled_scores(shown, find=followed):
    """As :func:`scores`, given labels and a mechanism."""
    episodes, mean, spread = shown
    values = [
        find(labelled, episodes, jax.random.key(r)).belief.atoms.values["accuracy"]
        for r in range(REPLICAS)
    ]
    parts = [v.mean() for v in values], [v.std() for v in values]
    errors = [np.std(part, ddof=1) / np.sqrt(REPLICAS) for part in parts]
    return abs(np.mean(parts[0]) - mean) / errors[0], abs(np.mean(parts[1]) - spread) / errors[1]


def test_particles_use_labels_and_the_mechanism(shown):
    mean, spread = labelled_scores(shown)
    assert mean < LIMITS[0]
    assert spread < LIMITS[1]


def test_particles_start_with_a_log_of_labels(shown):
    mean, spread = labelled_scores(shown, begun)
    assert mean < LIMITS[0]
    assert spread < LIMITS[1]


def test_hidden_states_of_a_log_of_labels_are_drawn_with_their_likelihood(shown, monkeypatch):
    """The planted bug: hidden states of the log are drawn without labels and marks."""
    drawn = []
    original = particles.hidden_tables

    def recorded(generator, tables, model, tree, clues=None):
        drawn.append(clues)
        return original(generator, tables, model, tree, clues)

    monkeypatch.setattr(particles, "hidden_tables", recorded)
    begun(labelled, shown[0], jax.random.key(0))
    assert drawn[0] is not None


@pytest.mark.parametrize("name", ["label", "revealed"])
def test_wrong_likelihoods_of_labels_and_marks_are_caught(shown, name, monkeypatch):
    """Other labels, or a mechanism that is ignored."""

    def wrong(clues, form, tables):
        other = tables[name][..., ::-1] if name == "label" else np.ones_like(tables[name])
        return likelihoods(clues, form, {**tables, name: other})

    monkeypatch.setattr(particles, "likelihoods", wrong)
    mean, spread = labelled_scores(shown)
    assert mean > LIMITS[0] or spread > LIMITS[1]


def test_complete_episodes_give_the_closed_form():
    world = models.load("tiger_table")
    complete = with_gaps(world, 20, 1.0)
    state = followed(world.homdp, complete, jax.random.key(0))
    exact = posterior(world.homdp, complete)
    assert np.allclose(state.concentrations, exact.closed)
    assert np.allclose(state.mean().emission, exact.mean.emission)


def test_discrete_sites_are_exact():
    """Weights equal the likelihoods of all configurations by enumeration of hidden paths."""
    model = programs.one_of_two()
    world = model.draw(jax.random.key(0))
    episodes = with_gaps(world, 6, 0.4)
    state = followed(model, episodes, jax.random.key(0))
    assert isinstance(state, Reweighted)
    atoms = state.belief.atoms
    start = follow(model, jax.random.key(0)).belief.atoms
    logs = np.log(start.probabilities)
    for k in range(len(atoms)):
        values = {name: value[k] for name, value in atoms.values.items()}
        with np.errstate(divide="ignore"):
            logs[k] += enumerated(model.at(**values), episodes)
    exact = np.exp(logs - logs.max())
    assert np.allclose(atoms.probabilities, exact / exact.sum())
    assert np.allclose(
        atoms.probabilities, posterior(model, episodes).atoms.probabilities, atol=1e-12
    )


@pytest.mark.slow
def test_other_declarations_sample_again():
    """The mean agrees with a full fit within 5 Monte Carlo errors (ESS above 400)."""
    model = programs.logistic()
    world = model.draw(jax.random.key(1))
    episodes = with_gaps(world, 30, 0.5)
    state = followed(model, episodes, jax.random.key(0))
    full = posterior(model, episodes)
    drawn, atoms = full.atoms, state.belief.atoms
    for name, values in drawn.values.items():
        here = atoms.means()[name]
        assert np.all(np.abs(here - values.mean(0)) < 5 * np.sqrt(2) * values.std(0) / 20)


def test_impossible_episodes():
    model = programs.one_of_two()
    state = follow(model, jax.random.key(0))
    none = type(state.tables)(*(np.zeros_like(table) for table in state.tables))
    broken = Reweighted(state.belief, state.evidence, none, {})
    episodes = with_gaps(model.draw(jax.random.key(0)), 1, 0.5)
    with pytest.raises(DataError), x64():
        broken.update(Evidence.of(episodes, model), jax.random.key(0))


@pytest.mark.slow
def test_draws_and_means_of_sensors():
    model = declared("plain")
    world = model.draw(jax.random.key(0))
    state = followed(model, with_gaps(world, 10, 0.5), jax.random.key(0))
    assert isinstance(state, Particles)
    drawn = state.draws(jax.random.key(1), 400).emission.mean(0)
    assert np.abs(drawn - state.mean().emission).max() < 0.06


def test_weights_and_order():
    """The evidence does not depend on how episodes are split between updates."""
    world = models.load("tiger_table")
    episodes = with_gaps(world, 12, 0.5)
    state = followed(world.homdp, episodes, jax.random.key(0))
    whole = Evidence.of(episodes, world.homdp)
    assert np.array_equal(state.evidence.gaps.number, whole.gaps.number)
    assert np.array_equal(state.evidence.counts.transition, whole.counts.transition)
    assert state.weights.sum() == pytest.approx(1)
    assert isinstance(episodes, Episodes)
