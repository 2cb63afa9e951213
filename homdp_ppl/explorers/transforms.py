"""Transforms of rules: random actions, and when to plan again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from homdp_ppl.core.checked import checked
from homdp_ppl.explorers.explorer import Explorer, Replan, with_deployment


@checked
def with_random_actions(rule: Explorer, share: float) -> Explorer:
    """Take a uniform action with probability ``share`` at every step.

    The random numbers stay those of the rule. A guarantee for the optimistic value still holds. The
    random actions add the same regret in every episode.

    Parameters
    ----------
    rule
        The rule.
    share
        The probability of a uniform action.

    Examples
    --------
    >>> from homdp_ppl import explorers
    >>> with_random_actions(explorers.tight(), 0.05)
    Explorer tight(random_actions=0.05): optimistic, frequentist
    """
    return _named(with_deployment(rule, random_actions=share), random_actions=share)


@checked
def replan_on_doubling(rule: Explorer) -> Explorer:
    """Plan again only when some n(x, a) has doubled since the last plan.

    It is the default for rules with bonuses and costs them almost no regret. It is harmful for
    rules that draw models at random. If states are real-valued, the rule plans again when the
    number of episodes has doubled.

    Examples
    --------
    >>> from homdp_ppl import explorers
    >>> replan_on_doubling(explorers.greedy())
    Explorer greedy(replan=doubled): no guarantee
    """
    return replanning(rule, "doubled")


@checked
def replan_every_episode(rule: Explorer) -> Explorer:
    """Plan again in every episode, as the paper's algorithms do.

    Examples
    --------
    >>> from homdp_ppl import explorers
    >>> replan_every_episode(explorers.hop_b())
    Explorer hop_b(replan=every episode): optimistic, frequentist
    """
    return replanning(rule, "every episode")


@checked
def replan_once(rule: Explorer) -> Explorer:
    """Plan before the first episode only.

    Examples
    --------
    >>> from homdp_ppl import explorers
    >>> replan_once(explorers.greedy())
    Explorer greedy(replan=once): no guarantee
    """
    return replanning(rule, "once")


def replanning(rule: Explorer, when: Replan) -> Explorer:
    """The rule with another ``replan``; the same rule if it has this one already."""
    if isinstance(rule, Explorer) and rule.deployment.replan == when:
        return rule
    return _named(with_deployment(rule, replan=when), replan=when)


def _named(rule: Explorer, **options: Any) -> Explorer:
    return replace(rule, about=replace(rule.about, options={**rule.about.options, **options}))
