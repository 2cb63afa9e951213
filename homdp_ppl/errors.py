"""Exceptions and the problems they report: what was given, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import log10
from typing import NamedTuple

UNKNOWN = "unknown "  # the prefix of ``got`` for a name that does not exist
LISTED = 20  # problems that are printed; the rest are only counted
LONGEST = 200  # longer values are described by their type


class Problem(NamedTuple):
    """One problem: where it is, what was given, what was expected and what to do.

    Examples
    --------
    >>> from homdp_ppl import Problem
    >>> print(Problem("accuracy", "1.2", "a probability", "Divide by 100?", at="left"))
    accuracy[left]: got 1.2; expected a probability. Divide by 100?
    """

    where: str  # the argument, kernel or site: "transition", "horizon", "site 'accuracy'"
    got: str  # what was given
    expected: str
    remedy: str = ""  # what to do, as a sentence
    at: str = ""  # the entry, in the names of the model: "(left, listen)"

    def __str__(self) -> str:
        place = f"{self.where}[{self.at}]" if self.at else self.where
        if self.got.startswith(UNKNOWN):
            line = f"{place}: {self.got}" if self.at else self.got
            line = f"{line}; {self.expected}"
        else:
            line = f"{place}: got {self.got}; expected {self.expected}"
        return f"{line}. {self.remedy}" if self.remedy else line


class HOMDPError(ValueError):
    """The base class of all errors of this package: a ``ValueError`` with a list of problems.

    Attributes
    ----------
    problems
        All problems that were found, as :class:`Problem` tuples.

    Examples
    --------
    >>> from homdp_ppl import HOMDPError, models
    >>> try:
    ...     models.load("lion")
    ... except HOMDPError as error:
    ...     print(error.problems[0].where, error.problems[0].got)
    model unknown model 'lion'
    """

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"{subject}: {count}"]
        previous = ""
        listed = LISTED if len(self.problems) > LISTED + 1 else len(self.problems)
        for k, problem in enumerate(self.problems[:listed], 1):
            repeated = problem.remedy == previous  # print a repeated remedy only once
            lines.append(f"  {k}. {problem._replace(remedy='') if repeated else problem}")
            previous = problem.remedy
        if len(self.problems) > listed:
            lines.append(f"  ... and {len(self.problems) - listed} more in .problems")
        super().__init__(subject, self.problems)  # these arguments make the error picklable
        self._message = "\n".join(lines)

    def __str__(self) -> str:
        return self._message


def shown(value: object, longest: int = LONGEST) -> str:
    """Format a value for an error message: its ``repr`` if it is short, else its type.

    Examples
    --------
    >>> shown("tiger"), shown(list(range(1000))), shown(10**5000)
    ("'tiger'", 'a list', 'an integer of 5001 digits')
    >>> shown(int), shown(sorted), shown(object())
    ('the class int', 'the function sorted', 'an object')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and isinstance(name := getattr(value, "__name__", None), str):
        return f"the function {name}"
    if isinstance(value, int) and abs(value).bit_length() > 3 * longest:
        return f"an integer of {int(log10(abs(value))) + 1} digits"
    try:
        text = repr(value)
    except Exception:  # from a user's class, or from very long integers inside a container
        text = ""
    if 0 < len(text) <= longest and " at 0x" not in text and "\n" not in text:
        return text
    return with_article(type(value).__name__)


def with_article(name: str) -> str:
    """The name of a type with its article.

    Examples
    --------
    >>> with_article("World"), with_article("int")
    ('a World', 'an int')
    """
    return f"{'an' if name[0] in 'AEIOUaeio' or name == 'ndarray' else 'a'} {name}"


def in_one_line(error: HOMDPError) -> str:
    """Format an error on one line. A remedy of several problems is printed once, after the last.

    Examples
    --------
    >>> in_one_line(
    ...     HOMDPError(
    ...         "model", [Problem("name", "'tigr'", "the name of a model", "Did you mean 'tiger'?")]
    ...     )
    ... )
    "model: name: got 'tigr'; expected the name of a model. Did you mean 'tiger'?"
    """
    lines = str(error).splitlines()
    later: set[str] = set()  # remedies that are printed for a later problem
    problems: list[str] = []
    for problem in reversed(error.problems):
        problems.insert(0, str(problem._replace(remedy="") if problem.remedy in later else problem))
        later.add(problem.remedy)
    subject, listed = f"{error.args[0]!s}: ", " | ".join(problems)
    message = listed if listed.startswith(subject) else subject + listed
    message = message if len(lines) > 1 else lines[0]
    return " ".join(message.split())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest a known name that is similar to a misspelt one; empty if there is none.

    Examples
    --------
    >>> did_you_mean("tigre", ["lock", "tiger"])
    "Did you mean 'tiger'?"
    >>> did_you_mean(" TIGER", ["lock", "tiger"])
    "Did you mean 'tiger'?"
    """
    if not isinstance(name, str):
        return ""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    if not near:  # capital letters only
        folded = {each.strip().casefold(): each for each in names if isinstance(each, str)}
        near = [folded[each] for each in [name.strip().casefold()] if each in folded]
    return f"Did you mean {near[0]!r}?" if near else ""


def unknown(
    where: str, kind: str, name: str, known: Iterable[str], owner: str, at: str = ""
) -> Problem:
    """Return the problem for a name that does not exist.

    Parameters
    ----------
    where
        The argument.
    kind
        What the name stands for, for example "site".
    name
        The unknown name.
    known
        The names that exist.
    owner
        The object that defines the known names, for example "this model".
    at
        The entry, if there are several.

    Examples
    --------
    >>> print(unknown("site 'bias'", "site", "bias", ["O"], "this model"))
    unknown site 'bias'; this model has: O
    >>> print(unknown("model", "model", "tigre", ["lock", "tiger"], "the model zoo"))
    unknown model 'tigre'; the model zoo has: lock, tiger. Did you mean 'tiger'?
    """
    known = list(known)
    has = f"{owner} has: {', '.join(known)}" if known else f"{owner} has none"
    return Problem(where, f"{UNKNOWN}{kind} {shown(name)}", has, did_you_mean(name, known), at)


class DeclarationError(HOMDPError):
    """An invalid declaration of a HOMDP.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import DeclarationError, tabular
    >>> try:
    ...     tabular(T=np.ones((2, 2)), O=[0.5, 0.5], initial=[1, 0], reward=[[0], [1]], horizon=1)
    ... except DeclarationError as error:
    ...     for problem in error.problems:
    ...         print(problem)
    T: got shape (2, 2); expected shape (X, A, X) or (H, X, A, X)
    O: got shape (2,); expected shape (X, Y), (A + 1, X, Y) or (H, A + 1 or 1, X, Y)
    """


class SpacesError(HOMDPError):
    """Real-valued states or observations where finite tables are needed.

    Examples
    --------
    >>> from homdp_ppl import SpacesError, models
    >>> try:
    ...     models.load("light_dark").pomdp
    ... except SpacesError as error:
    ...     print(error.problems[0].where, "got", error.problems[0].got)
    pomdp got states in R, observations in R
    """


class ParameterError(HOMDPError):
    """Invalid arguments, or values of sites that a declaration does not have or allow.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import ParameterError, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> try:
    ...     coin.at(bias=0.7)
    ... except ParameterError as error:
    ...     for problem in error.problems:
    ...         print(problem._replace(remedy=""))
    unknown site 'bias'; this model has: O
    site 'O': got no value; expected a value for every site
    """


class TracedError(ParameterError):
    """Traced JAX values passed to a function that needs concrete numbers.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import ParameterError, explorers
    >>> try:
    ...     jax.jit(lambda share: explorers.with_random_actions(explorers.tight(), share))(0.1)
    ... except ParameterError as error:
    ...     print(error.problems[0].remedy)
    This function cannot be traced: call it outside of jit, vmap and grad.
    """


class DataError(HOMDPError):
    """Episodes, counts or random keys that are invalid or do not fit a model.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Counts, DataError, Episode, Spaces, Trajectory
    >>> episode = Episode(Trajectory(np.array([0]), np.array([0])), np.array([0, 7]))
    >>> try:
    ...     Counts.of(episode, Spaces(("off", "on"), ("dark", "light"), ("wait",), horizon=1))
    ... except DataError as error:
    ...     print(error.problems[0])
    states[episode 0, step 2]: got 7; expected an index in 0..1
    """


class InferenceError(HOMDPError):
    """A posterior that cannot be computed, or not accurately enough.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, InferenceError, posterior, tabular
    >>> from homdp_ppl.posteriors import Sampling
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> try:
    ...     posterior(coin, Counts.zero(coin), sampling=Sampling(draws=2))
    ... except InferenceError as error:
    ...     print(error.problems[0])
    sampling.draws: got 2; expected at least 4
    """


class PlanningError(HOMDPError):
    """An invalid model or plan, or a model that a planner does not support.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, PlanningError
    >>> from homdp_ppl.planners import history_tree
    >>> try:
    ...     history_tree()(
    ...         POMDP.of([1], np.ones((1, 2, 1)), [[0.5, 0.5]], reward=np.ones((40, 1, 2)))
    ...     )
    ... except PlanningError as error:
    ...     print(error.problems[0].remedy)
    The largest horizon that fits is 11; for longer horizons use bounded_search or alpha_vectors.
    """


class PolicyError(HOMDPError):
    """An invalid policy, or a policy that does not fit the given model or history.

    Examples
    --------
    >>> from homdp_ppl import GraphPolicy, PolicyError
    >>> try:
    ...     GraphPolicy(start=[0, 0], probabilities=[[0.5, 0.6]], successor=[[[0, 0]]])
    ... except PolicyError as error:
    ...     print(error.problems[0])
    probabilities[node 0]: got [0.5 0.6]; expected probabilities that sum to 1
    """


class OptimismWarning(UserWarning):
    """The optimistic value of a run is below a value that its own certificate proves achievable.

    So the rule is not optimistic: the optimum is larger than the value for which it explores, and
    it may have stopped to explore too early. See :attr:`Run.below_certificate`.

    Examples
    --------
    >>> import warnings
    >>> import jax.numpy as jnp, numpy as np, numpyro, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, explorers, homdp, learn
    >>> from homdp_ppl.planners import history_tree
    >>> @homdp(states=2, observations=2, actions=2, horizon=1, reward=np.eye(2))
    ... def guess():
    ...     p = numpyro.sample("p", dist.Beta(200, 200))  # a prior that is far too sure
    ...     return Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), jnp.array([[p, 1 - p], [1 - p, p]]))
    >>> run = learn(guess.at(p=0.99), explorers.quantile_backup(), history_tree(), episodes=60)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     certificate = run.certificate
    >>> [warning.category.__name__ for warning in caught]
    ['OptimismWarning']
    """


class HindsightWarning(UserWarning):
    """Which states are revealed depends on what was seen or done.

    Examples
    --------
    >>> import jax, numpy as np, warnings
    >>> from homdp_ppl import Episodes, HindsightWarning, models, posterior, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> played = rollout(jax.random.split(jax.random.key(0), 100), world, uniform_policy(world))
    >>> known = np.ones(played.states.shape, dtype=bool)
    >>> known[:, :-1] = played.observations == 0  # revealed after a growl from the left only
    >>> log = Episodes(played.observations, played.actions, played.states, revealed=known)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     belief = posterior(world.homdp, log)
    >>> [warning.category.__name__ for warning in caught]
    ['HindsightWarning']
    """
