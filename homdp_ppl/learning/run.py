"""``Run``: the result of :func:`homdp_ppl.learn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.episodes import SAW_STATES, Episodes
from homdp_ppl.core.policy import Policy
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.explorers.state import State
from homdp_ppl.learning.certificate import Certificate, certify, exceeded_by
from homdp_ppl.learning.compiled import compiled_loop
from homdp_ppl.learning.described import described
from homdp_ppl.learning.hindsight import how, unnamed
from homdp_ppl.learning.learner import Decision
from homdp_ppl.learning.loop import advance, plan_again
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.learning.mixture import Mixture
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.task import Task
from homdp_ppl.posteriors import Posterior, posterior
from homdp_ppl.posteriors.tracking import Tracked
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    import xarray as xr

COMPILED = "compiled loop"


@dataclass(frozen=True, eq=False, repr=False)
class Run(Measured):
    """The result of :func:`homdp_ppl.learn`.

    Values are exact in finite worlds, and for policies on cells of the real line
    (:func:`homdp_ppl.planners.quantised`). For policies that plan online, values are means of
    simulated episodes, and ``estimated`` is True.

    Attributes
    ----------
    task
        The task: world, rule, planner, episodes and seed.
    record
        One entry per round or per episode.
    state
        The current state of the rule.
    decision
        The last decision.
    seconds
        Seconds spent on planning, inference, evaluation and acting; for a compiled run, on
        compiling and on everything else.
    loop
        Which loop ran, and why.
    policies
        The policy of each round that planned, for rules whose state is more than counts.
    certified
        The certificates that were computed during the run, if it had a ``stop_when``.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import explorers, learn, tabular
    >>> from homdp_ppl.planners import history_tree
    >>> ears = dist.Dirichlet(np.ones((2, 2)))
    >>> guess = tabular(
    ...     T=np.full((2, 2, 2), 0.5), O=ears, initial=[0.5, 0.5], reward=np.eye(2), horizon=1
    ... )
    >>> run = learn(
    ...     guess.at(O=[[0.9, 0.1], [0.1, 0.9]]),
    ...     explorers.uniform(),
    ...     history_tree(),
    ...     episodes=3,
    ...     compiled=False,
    ... )
    >>> round(run.optimum, 6), run.values.round(6).tolist(), run.regret.round(6).tolist()
    (0.9, [0.5, 0.5, 0.5], [0.4, 0.8, 1.2])

    With real-valued observations:

    >>> from homdp_ppl import Kernels, Real, homdp
    >>> from homdp_ppl.planners import quantised
    >>> @homdp(states=2, observations=Real(1), actions=2, horizon=1, reward=np.eye(2))
    ... def guess():
    ...     return Kernels(
    ...         [0.5, 0.5], np.full((2, 2, 2), 0.5), lambda x: dist.Normal(2 * x - 1, 1.0)
    ...     )
    >>> run = learn(guess.at(), explorers.uniform(), quantised(), episodes=2)
    >>> (
    ...     run.values.round(2).tolist(),
    ...     run.gaps.round(2).tolist(),
    ... )  # the best guess is right with probability 0.84
    ([0.5, 0.5], [0.34, 0.34])
    """

    task: Task
    record: Record
    state: State
    decision: Decision | None
    seconds: Mapping[str, float]
    loop: str
    policies: Mapping[int, Policy]
    certified: Certificate | None = None

    @property
    def about(self) -> dict[str, str | int | float]:
        """The run as text and numbers that can be saved."""
        return {**self.task.about, "loop": self.loop}

    @property
    def compiled(self) -> bool:
        """Whether the compiled loop ran."""
        return self.loop == COMPILED

    @property
    def episodes(self) -> Episodes:
        """All episodes, with what was revealed: latent states, or labels if they are declared."""
        return self.task.all_shown(self._every_state)

    @property
    def _every_state(self) -> Episodes:
        """All episodes, also with the states that were not revealed."""
        behaviour = SAW_STATES if self.task.foresight else None
        return self.record.episodes(self.task.world.spaces, behaviour)

    @property
    def returns(self) -> Array:
        """The return of each episode."""
        return self.task.model.returns(self._every_state)

    @property
    def policy(self) -> Policy:
        """The policy of the last round, to be deployed without further learning."""
        if self.decision is None:
            raise ParameterError("run", [Problem("policy", "no rounds yet", "at least one round")])
        return described(self.decision.policy, self)

    def policy_at(self, index: int) -> Policy:
        """The policy of one round; planned again from the counts of that time if not stored."""
        last = self.planned_at(index)
        if last in self.policies:
            return self.policies[last]
        if not self.state.only_counts:
            got, expected = f"round {index}, before the run was restored", "a later round"
            remedy = "Policies of restored rounds are not stored. Run learn again."
            raise ParameterError("policy_at", [Problem("round", got, expected, remedy)])
        return plan_again(self, last)

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds on the values of deployed policies and on the optimum, from the episodes alone.

        Available for every rule in finite worlds. The bounds are computed when you first ask for
        them, after about 10 % more rounds each time and after the last round; each takes one plan
        and one evaluation. ``learn(..., stop_when=...)`` computes them during the run.

        Raises
        ------
        SpacesError
            If a space is real-valued.
        PolicyError
            If policies plan online.
        """
        return certify(self) if self.certified is None else self.certified

    @property
    def below_certificate(self) -> bool:
        """Whether the last optimistic value is below a value that is certified to be achievable.

        False if no certificate was computed yet, by ``stop_when`` or :attr:`certificate`. If True,
        an :class:`OptimismWarning` was given when it was computed.
        """
        known: Certificate | None = self.__dict__.get("certificate", self.certified)
        return known is not None and exceeded_by(self, known)

    @property
    def mixture(self) -> Mixture:
        """The uniform mixture of the policies of all rounds."""
        return Mixture(self)

    @property
    def posterior(self) -> Posterior:
        """The posterior under the learner's declaration, given the log and all episodes."""
        memory, model = self.state.memory, self.task.model
        if isinstance(memory, Tracked):
            return memory.belief
        if isinstance(memory, Posterior):
            return memory
        log = self.task.log
        incomplete = self.task.reveal is not None or (log is not None and log.evidence is not None)
        # not from the rule's counts: HOP-V counts single steps only
        if model.spaces.finite and not incomplete:
            return posterior(model, self.task.counts(self.episodes))
        return posterior(model, self.episodes if log is None else log.episodes + self.episodes)

    @checked
    def resume(self, stop_after: int | None = None) -> Run:
        """Continue to the end or to a number of episodes, as if the run had never stopped."""
        rounds = self.task.rounds_of(stop_after)
        run = self if self.certified is None else replace(self, certified=None)
        if self.compiled:
            return compiled_loop(self.task).run([run], rounds)[0]
        return advance(run, rounds)

    def planned_at(self, index: int) -> int:
        """The round in which the policy of a round was planned."""
        if not (isinstance(index, int | np.integer) and 0 <= index < len(self.values)):
            raise ParameterError(
                "policy_at",
                [Problem("round", shown(index), f"a round in 0..{len(self.values) - 1}")],
            )
        return int(np.flatnonzero(self.record.planned[: index + 1])[-1])

    def to_dataset(self) -> xr.Dataset:
        """The run as an xarray Dataset with axes round, episode and step."""
        import xarray as xr

        record = self.record
        variables: dict[str, Any] = {
            "value": ("round", record.values),
            "optimistic": ("round", record.optimistic),
            "gap": ("round", self.gaps),
            "regret": ("round", self.regret),
            "was_optimistic": ("round", self.was_optimistic),
            "plans": ("round", record.plans),
            "played": ("episode", record.played),
            "impossible": ("episode", record.impossible),
            "observation": (
                ("episode", "step", "observation_axis")[: record.observations.ndim],
                record.observations,
            ),
            "action": (("episode", "step"), record.actions),
            "state": (
                ("episode", "step_or_end", "state_axis")[: record.states.ndim],
                record.states,
            ),
        }
        if record.rewards is not None:
            variables["reward"] = (("episode", "step"), record.rewards)
        axes: dict[str, Array] = {
            "round": np.arange(1, len(record.values) + 1),
            "episode": np.arange(1, len(record.played) + 1),
        }
        if self.certified is not None:
            axes["certified_round"] = self.certified.rounds
            for name in ("lower", "upper"):
                variables[name] = ("certified_round", getattr(self.certified, name))
        return xr.Dataset(variables, axes, self.about)

    def to_arviz(self) -> Any:
        """The posterior given all episodes, for ArviZ; see :meth:`Posterior.to_arviz`.

        Examples
        --------
        >>> from homdp_ppl import explorers, learn, models
        >>> from homdp_ppl.planners import history_tree
        >>> run = learn(
        ...     models.load("tiger", horizon=2),
        ...     explorers.greedy(),
        ...     history_tree(),
        ...     episodes=3,
        ...     compiled=False,
        ... )
        >>> run.to_arviz()["observed_data"]["observation"].dims
        ('episode', 'step')
        """
        return self.posterior.to_arviz(self.episodes)

    def __repr__(self) -> str:
        task, rounds = self.task, len(self.values)
        epochs = task.explorer.deployment.uniform_at_each_step
        word = ("epoch" if epochs else "episode") + "s" * (rounds != 1)
        head = (
            f"Run of {task.explorer.name} in {task.world.homdp.name!r}, seed "
            f"{task.seed}: {rounds:,} {word}"
        )
        if rounds == 0:
            return head
        covered = f"optimistic in {np.mean(self.was_optimistic):.0%}"
        note = (
            f" (estimated by {task.simulations} simulated episodes each)" if task.estimated else ""
        )
        lost, last = (
            round(float(column[-1]), 9) + 0.0 for column in (self.regret, self.gaps)
        )  # no -1e-15, no -0
        if self.inexact:
            note = f"{note}; the optimum is {self.inexact}"
        if epochs:
            note = (
                f" of the policies; {self.lost[-1]:.4g} lost in {len(self.lost):,} episodes{note}"
            )
        lines = [head, f"regret {lost:.4g}, last gap {last:.4g}, {covered}{note}"]
        if task.reveal is not None:
            lines.append(f"revealed: {task.reveal}; {how(task.explorer)}")
            lines += unnamed(task.model, task.reveal)
        if task.log is not None:
            lines.append(f"after a log of {len(task.log.episodes):,} episodes")
        if self.certified is not None:
            lines.append(repr(self.certified))
        if self.below_certificate:
            lines.append("NOT OPTIMISTIC: the optimistic value is below what is certified")
        return "\n  ".join([*lines, self.loop])
