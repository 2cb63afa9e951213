"""Certainty equivalence with random actions."""

from __future__ import annotations

from homdp_ppl.confidence.arguments import check_arguments
from homdp_ppl.explorers.explorer import Explorer, Replan, anything, changed, declared
from homdp_ppl.explorers.greedy import certainty_equivalent


def epsilon_greedy(
    epsilon: float = 0.1, known: bool = True, replan: Replan = "every episode"
) -> Explorer:
    """As `greedy`, but every action is uniform with probability epsilon.

    A baseline without optimism, whose regret never stops growing: the random actions cost the same
    in every episode.

    Parameters
    ----------
    epsilon
        Probability of a uniform action at each step.
    known, replan
        As in :func:`greedy`.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(
    ...     models.load("tiger", horizon=2), epsilon_greedy(epsilon=0.3), history_tree(), episodes=3
    ... )
    >>> run.values[:1].round(
    ...     4
    ... )  # each of two steps: 0.7 * 0.9 for listening, 0.3 * 1.9 / 3 for any of three actions
    array([1.64])
    """
    check_arguments("epsilon_greedy", epsilon=epsilon)
    options = changed(epsilon_greedy, epsilon=epsilon, known=known, replan=replan)
    return Explorer(
        "epsilon_greedy",
        certainty_equivalent(known),
        "none",
        options,
        support=declared if known else anything,
        explore=epsilon,
        replan=replan,
    )
