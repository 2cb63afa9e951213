"""Stationary models that are equivalent to models of full ranks, encoded by hand in the state."""

from dataclasses import replace

import numpy as np

from homdp_ppl import POMDP, World, tabular
from tests.planners.exact import dependent_pomdp, full


def ending_pomdp(
    seed: int, X: int = 2, Y: int = 2, A: int = 2, H: int = 3, kinds: str = "toy"
) -> POMDP:
    """Random tables of full ranks in which episodes may end.

    A terminal state and the observation "ended" are added after the others.
    """
    model = dependent_pomdp(seed, X, Y, A, H, kinds=kinds)
    generator = np.random.default_rng([seed, 1])
    T = np.pad(model.transition, ((0, 0), (0, 1), (0, 0), (0, 1)))
    over = generator.uniform(0, 0.6, (*T.shape[:1], X, A)) * (generator.random((X, A)) < 0.7)
    T[:, :X] *= 1 - over[..., None]
    T[:, :X, :, X] = over
    T[:, X, :, X] = 1.0
    O = np.pad(model.emission, ((0, 0), (0, 0), (0, 1), (0, 1)))  # noqa: E741
    O[..., X, Y] = 1.0
    r = np.pad(model.reward, ((0, 0), (0, 1), (0, int("y" in kinds)), (0, 0)))
    return model._replace(
        initial=np.append(model.initial, 0.0),
        transition=T,
        emission=O,
        reward=r,
        terminal=np.arange(X + 1) == X,
    )


def encoded(pomdp: POMDP) -> POMDP:
    """The same model with one table of each kind for all steps.

    A state is (step, previous action, state, observation); it emits its observation.
    """
    T, O, r = full(pomdp)  # noqa: E741
    H, X, Y, A = r.shape
    shape = (H, A + 1, X, Y)
    n = int(np.prod(shape))
    place = np.arange(n).reshape(shape)
    initial, moves, shows, reward = (
        np.zeros(n),
        np.zeros((n, A, n)),
        np.zeros((n, Y)),
        np.zeros((n, A)),
    )
    initial[place[0, A]] = pomdp.initial[:, None] * O[0, A]
    for h, b, x, y in np.ndindex(shape):
        here = place[h, b, x, y]
        shows[here, y] = 1.0
        reward[here] = r[h, x, y]
        for a in range(A):
            if h + 1 == H:
                moves[here, a, here] = 1.0
            else:
                moves[here, a, place[h + 1, a]] = T[h, x, a][:, None] * O[h + 1, a]
    terminal = np.broadcast_to(pomdp.terminal[:, None], shape).ravel()
    return POMDP.of(initial, moves, shows, reward, horizon=H, terminal=terminal)


def world_of(pomdp: POMDP) -> World:
    """A world with these arrays."""
    X, _, A = pomdp.sizes
    form = pomdp.form
    model = tabular(
        T=pomdp.transition.reshape(form.transition),
        O=pomdp.emission.reshape(form.emission),
        initial=pomdp.initial,
        reward=np.zeros((X, A)),
        horizon=pomdp.horizon,
    )
    return replace(model.at(), _pomdp=pomdp)
