"""Declarations with two sensors, and the same models with one hand-encoded joint emission."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from homdp_ppl import HOMDP, Episodes, Kernels, World, homdp, rollout, uniform_policy

H, A, X = 3, 2, 2
EAR, EYE = ("left", "right"), ("dark", "dim", "light")
MOVES = [[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]]
REWARD = [[1.0, 0.1], [0.0, 0.7]]
SENSORS = {"ear": EAR, "eye": EYE}
JOINT = [f"{ear}, {eye}" for ear in EAR for eye in EYE]


def product(ear: Any, eye: Any) -> Any:
    """The joint table, written out: the ear is slow, the eye is fast."""
    return jnp.stack([ear[..., i] * eye[..., j] for i in range(2) for j in range(3)], axis=-1)


def plain(joint: bool) -> Kernels:
    """Independent Dirichlet rows of both sensors."""
    ear = numpyro.sample("ear", dist.Dirichlet(jnp.array([[3.0, 1.0], [1.0, 2.0]])).to_event(1))
    eye = numpyro.sample("eye", dist.Dirichlet(jnp.array([[1.0, 2, 1], [1, 1, 4]])).to_event(1))
    shows = product(ear, eye) if joint else {"ear": ear, "eye": eye}
    return Kernels([0.5, 0.5], MOVES, shows)


def answers(joint: bool) -> Kernels:
    """The ear answers the previous action, the eye does not."""
    ear = numpyro.sample("ear", dist.Dirichlet(jnp.ones((A, X, 2))).to_event(2))
    first = jnp.full((X, 2), 0.5)
    eye = numpyro.sample("eye", dist.Dirichlet(jnp.ones((X, 3))).to_event(1))
    if joint:
        return Kernels([0.5, 0.5], MOVES, product(jnp.concatenate([ear, first[None]]), eye[None]))
    shows = {"ear": lambda x, a: dist.Categorical(probs=ear[a, x]), "eye": eye}
    return Kernels([0.5, 0.5], MOVES, shows, {"ear": first})


def returned(joint: bool) -> Kernels:
    """The emission and the first one are functions that return dicts."""
    p = numpyro.sample("p", dist.Beta(4.0, 2.0))
    eye = numpyro.sample("eye", dist.Dirichlet(jnp.ones((X, 3))).to_event(1))
    q = jnp.array([p, 1 - p])
    if joint:
        ear = jnp.stack([jnp.stack([q, q[::-1]]), jnp.full((X, 2), 0.5), jnp.full((X, 2), 0.5)])
        return Kernels([0.5, 0.5], MOVES, product(ear, eye[None]))
    return Kernels(
        [0.5, 0.5],
        MOVES,
        lambda x, a: {
            "eye": dist.Categorical(probs=eye[x]),
            "ear": dist.Bernoulli(jnp.where(a == 0, jnp.where(x == 1, p, 1 - p), 0.5)),
        },
        lambda x: {"ear": dist.Bernoulli(0.5), "eye": dist.Categorical(probs=eye[x])},
    )


def steps(joint: bool) -> Kernels:
    """The eye depends on the step, the ear on the previous action."""
    ear = numpyro.sample("ear", dist.Dirichlet(jnp.ones((A + 1, X, 2))).to_event(2))
    eye = numpyro.sample("eye", dist.Dirichlet(jnp.ones((H, X, 3))).to_event(2))
    if joint:
        return Kernels([0.5, 0.5], MOVES, product(ear[None], eye[:, None]))
    return Kernels(
        [0.5, 0.5], MOVES, {"ear": ear, "eye": lambda x, h: dist.Categorical(probs=eye[h - 1, x])}
    )


def shared(joint: bool) -> Kernels:
    """Two sensors with the same unknown accuracy; the eye is never "light"."""
    p = numpyro.sample("p", dist.Beta(3.0, 2.0))
    ear = jnp.array([[p, 1 - p], [1 - p, p]])
    eye = jnp.array([[p, 1 - p, 0.0], [0.75 * (1 - p), 0.75 * p, 0.25]])
    shows = product(ear, eye) if joint else {"ear": ear, "eye": eye}
    return Kernels([0.5, 0.5], MOVES, shows)


def nested(joint: bool) -> Kernels:
    """In the far state the eye cannot tell "dim" from "light": the row shows their sum."""
    ear = numpyro.sample("ear", dist.Dirichlet(jnp.ones((X, 2))).to_event(1))
    eye = numpyro.sample("eye", dist.Dirichlet(jnp.array([2.0, 1.0, 1.0])))
    eyes = jnp.stack([eye, jnp.array([eye[0], eye[1] + eye[2], 0.0])])
    shows = product(ear, eyes) if joint else {"ear": ear, "eye": eyes}
    return Kernels([0.5, 0.5], MOVES, shows)


def mixed(joint: bool) -> Kernels:
    """A closed form for the ear, none for the eye."""
    ear = numpyro.sample("ear", dist.Dirichlet(jnp.ones((X, 2))).to_event(1))
    slope = numpyro.sample("slope", dist.Normal(1.0, 1.0))
    eye = jax.nn.softmax(slope * jnp.array([[1.0, 0.0, -1.0], [-1.0, 0.5, 1.0]]))
    shows = product(ear, eye) if joint else {"ear": ear, "eye": eye}
    return Kernels([0.5, 0.5], MOVES, shows)


def ended(joint: bool) -> Kernels:
    """The second state is terminal; its rows are not used."""
    ear = numpyro.sample("ear", dist.Dirichlet(jnp.ones(2)))
    eye = numpyro.sample("eye", dist.Dirichlet(jnp.ones(3)))
    ears, eyes = (jnp.stack([row, jnp.full(row.shape, jnp.nan)]) for row in (ear, eye))
    shows = product(ears, eyes) if joint else {"ear": ears, "eye": eyes}
    return Kernels([1.0, 0.0], MOVES, shows)


KINDS = {f.__name__: f for f in (plain, answers, returned, steps, shared, nested, mixed, ended)}


@cache
def declared(kind: str, joint: bool = False) -> HOMDP:
    """A declaration with two sensors, or the same with joint observations."""
    spaces: dict[str, Any] = {
        "states": ("near", "far"),
        "observations": JOINT if joint else SENSORS,
        "actions": ("wait", "look"),
    }
    terminal = ("far",) if kind == "ended" else ()

    def program() -> Kernels:
        return KINDS[kind](joint)

    program.__name__ = kind
    return homdp(**spaces, horizon=H, reward=REWARD, terminal=terminal)(program)


@cache
def worlds(kind: str) -> tuple[World, World]:
    """The same world in both declarations, drawn from the prior."""
    world = declared(kind).draw(jax.random.key(3))
    return world, declared(kind, joint=True).at(**world.parameters)


@cache
def data(kind: str, episodes: int = 40) -> Episodes:
    """Episodes of the world."""
    world = worlds(kind)[0]
    played: Episodes = rollout(
        jax.random.split(jax.random.key(5), episodes), world, uniform_policy(world)
    )
    return played
