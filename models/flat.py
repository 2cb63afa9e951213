"""The same world without structure: all rows unknown under Dirichlet priors."""

import numpy as np
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import restricted, tabular
from homdp_ppl.declare.hindsight_validation import declares_coin
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem


def flat_table(
    world: World,
    transition: float | None = None,
    emission: float | None = None,
    kind: str = "table",
) -> World:
    """The same world with every row of T and O unknown under symmetric Dirichlet priors.

    The initial distribution, the rewards, terminal states and allowed actions stay known. Random
    rewards, labels, and mechanisms of reveals other than a coin raise ParameterError.

    Parameters
    ----------
    world
        The true world.
    transition, emission
        The concentrations of the priors; 1 is flat. Default: :func:`sparse_concentration`.
    kind
        Suffix for the name of the declaration.
    """
    if world.homdp.rewards.law is not None:
        remedy = "Use the declared prior: its rewards are part of the program."
        problem = Problem("world", "random rewards", "known rewards", remedy)
        raise ParameterError("flat_table", [problem])
    if world.homdp.hindsight_form is not None and not declares_coin(world.homdp):
        remedy = "Use the declared prior: what is revealed is part of the program."
        problem = Problem("world", "labels or a mechanism of reveals", "revealed states", remedy)
        raise ParameterError("flat_table", [problem])
    spaces, pomdp, rewards = world.spaces, world.pomdp, world.homdp.reward
    T, O = world.homdp.form.short(pomdp.transition, pomdp.emission)  # noqa: E741
    observations = spaces.names[1]
    if spaces.terminal:  # the last observation is not declared
        observations = observations[:-1]
        O = np.where(spaces.ends[:, None], 1 / len(observations), O[..., :-1])  # noqa: E741
        rewards = rewards[:, :, :-1] if rewards.ndim == 4 else rewards
    t, o = (
        sparse_concentration(table.shape[-1]) if given is None else given
        for table, given in ((T, transition), (O, emission))
    )
    model = tabular(
        T=dist.Dirichlet(np.full(T.shape, t)),
        O=dist.Dirichlet(np.full(O.shape, o)),
        initial=pomdp.initial,
        reward=rewards,
        reward_range=world.homdp.reward_range,
        horizon=spaces.horizon,
        states=spaces.names[0],
        observations=observations,
        actions=spaces.actions,
        terminal=spaces.terminal,
        name=f"{world.homdp.name}_{kind}",
    )
    if world.homdp.allowed is not None:
        model = restricted(model, world.homdp.allowed)
    return model.at(T=T, O=O)


def sparse_concentration(outcomes: int) -> float:
    """The concentration 1 / (d - 1) of a Dirichlet prior on rows with d outcomes.

    The whole prior counts as d / (d - 1) observations, between 1 and 2, whatever the size of the
    table. With two outcomes it is uniform. A flat prior counts as d observations: on a large table
    with few possible outcomes per row, rows that were never visited then look known, and Bayesian
    rules never visit them.

    Parameters
    ----------
    outcomes
        d.

    Examples
    --------
    >>> sparse_concentration(2), sparse_concentration(5)
    (1.0, 0.25)
    """
    return 1.0 / max(outcomes - 1, 1)
