"""HOP-B with a finite class of emission tables (appendix C.6)."""

from __future__ import annotations

import numpy as np

from homdp_ppl.confidence.arguments import check_arguments
from homdp_ppl.confidence.bonuses import hop_b_class_bonus
from homdp_ppl.confidence.counts import empirical, hop_b_class_radii
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers._classes import Members, check_fit, check_tables, log_likelihoods
from homdp_ppl.explorers._densities import DensityClass, of_densities
from homdp_ppl.explorers._hop_b_densities import density_rule
from homdp_ppl.explorers._rules import tables_only
from homdp_ppl.explorers.explorer import (
    Explorer,
    Proposal,
    Replan,
    State,
    anything,
    changed,
    declared,
    one,
)
from homdp_ppl.precision import Array, namespace


def hop_b_class(
    emissions: Members,
    delta: float = 0.1,
    scale: float = 1.0,
    known: bool = True,
    replan: Replan = "doubled",
) -> Explorer:
    """Plan in T-hat and the most likely O of a class, with r-hat = r + 3 H eps(x, a) + H eps(x).

    Lee, Agarwal, Dann and Zhang (2023), appendix C.6. Optimistic for every policy with probability
    1 - 3 delta if the true O is in the class; the emission radius grows with the logarithm of the
    class, not with Y.

    Parameters
    ----------
    emissions
        The class Theta: tables (N, X, Y), or worlds; of continuous worlds only the emission
        densities count.
    delta, scale, known, replan
        As in :func:`hop_b`.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> deaf, world = (
    ...     models.load("tiger", horizon=2, accuracy=accuracy) for accuracy in (0.5, 0.85)
    ... )
    >>> rule = hop_b_class([deaf, world])
    >>> run = learn(world, rule, history_tree(), episodes=20)
    >>> rule.propose(jax.random.key(0), run.state).models.shows(0)[
    ...     0, 0
    ... ]  # the second explains what was heard better
    array([0.85, 0.15])
    """
    check_arguments("hop_b_class", delta=delta, scale=scale)
    told = changed(hop_b_class, delta=delta, scale=scale, known=known, replan=replan)
    scaled = scale != 1.0
    if of_densities(emissions):
        shows, refuse = (
            DensityClass("hop_b_class", "emissions", emissions),
            tables_only("hop_b_class", "emissions"),
        )
        options, rule = {"emissions": len(shows)} | told, density_rule(shows, delta, scale, known)
        return Explorer(
            "hop_b_class",
            refuse,
            "frequentist",
            options,
            init=refuse,
            replan=replan,
            scaled=scaled,
            continuous=rule,
        )
    tables = check_tables("hop_b_class", "emissions", emissions, 3)

    def propose(key: Array, state: State) -> Proposal:
        homdp = state.homdp
        radii = hop_b_class_radii(
            homdp, state.counts, state.episodes, len(tables), delta, scale, known
        )
        likeliest = log_likelihoods(tables, state.counts.emission).argmax()
        xp, model = namespace(state.counts), empirical(homdp, state.counts, known)
        emission = xp.where(exact(homdp), model.shows(0), xp.asarray(tables)[likeliest])
        bonus = hop_b_class_bonus(radii, homdp.horizon)
        return one(model.with_tables(emission=emission).with_bonus(bonus))

    def exact(homdp: HOMDP) -> Array:
        return homdp.structure.known.emission[:, None] & known

    def support(homdp: HOMDP) -> Tables:
        check_fit("hop_b_class", homdp, emissions=tables)
        allowed = declared(homdp) if known else anything(homdp)
        return allowed._replace(
            emission=np.where(exact(homdp), allowed.emission, (tables > 0).any(0))
        )

    options = {"emissions": len(tables)} | told
    return Explorer(
        "hop_b_class",
        propose,
        "frequentist",
        options,
        support=support,
        replan=replan,
        scaled=scaled,
    )
