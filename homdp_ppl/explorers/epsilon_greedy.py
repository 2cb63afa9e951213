"""Certainty equivalence with random actions."""

from __future__ import annotations

from dataclasses import replace

from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.checked import checked
from homdp_ppl.explorers.explorer import About, Explorer, changed
from homdp_ppl.explorers.greedy import greedy
from homdp_ppl.explorers.transforms import with_random_actions


@checked
def epsilon_greedy(epsilon: float = 0.1, known: bool = True) -> Explorer:
    """Like `greedy`, but each action is uniform with probability epsilon.

    A baseline without optimism. Its regret grows linearly, because the random actions cost the same
    in every episode. It equals ``with_random_actions(greedy(known), epsilon)``, but has its own
    name.

    Parameters
    ----------
    epsilon
        Probability of a uniform action at each step.
    known
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
    about = About("epsilon_greedy", changed(epsilon_greedy, epsilon=epsilon, known=known))
    return replace(with_random_actions(greedy(known), epsilon), about=about)
