"""Rewards and costs of a declaration, with the units in which they were declared.

Inside, rewards are in [0, 1]. Values in the user's units are scale * value + H * shift:

- The range is ``reward_range=(low, high)``, by default the smallest and the largest number. For
  functions of real-valued spaces, whose extremes are not known, the default is [0, 1].
- If the range is within [0, 1], rewards are not changed: scale 1, shift 0.
- Otherwise low becomes 0 and high becomes 1: scale = high - low, shift = low.
- For costs, the reward is minus the cost. Their range is that of the costs.
- Terminal states earn 0 in the user's units, and the range is extended to contain 0.
- Unknown or random rewards are a kernel of the program. Their range must be declared, and becomes
  [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution

from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.probabilities import reward_entry
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.declare.reward_forms import (
    LISTED,
    from_array,
    from_function,
    negated,
    traced_problems,
)
from homdp_ppl.declare.reward_law import RewardLaw
from homdp_ppl.declare.signatures import KernelError, Recognised, recognised
from homdp_ppl.declare.spaces import after_end
from homdp_ppl.errors import Problem, shown
from homdp_ppl.precision import Array, namespace

# r_h(x, y, a) in [0, 1], from (h from 0, x, y, a); traceable by JAX
RewardFunction: TypeAlias = Callable[[Array | int, Array, Array, Array], Array]

# whether every reward is recorded, or some at random, whatever happened in the episode
Recorded: TypeAlias = Literal["always", "coin"]


class Given(NamedTuple):
    """The arguments of a declaration that concern rewards."""

    reward: Any = None
    cost: Any = None
    reward_range: Any = None
    recorded: Any = "always"

    @property
    def where(self) -> str:
        """Which of both was declared."""
        return "reward" if self.cost is None else "cost"

    @property
    def numbers(self) -> Any:
        """The declared reward or cost."""
        return self.reward if self.cost is None else self.cost


class Rewards(NamedTuple):
    """The rewards of a declaration in [0, 1], and how they relate to the user's units.

    Examples
    --------
    >>> spaces = Spaces(("off", "on"), ("dark", "light"), ("wait", "mend"), 3)
    >>> rewards, _ = rewards_of(Given(cost=[[5, 9], [1, 5]]), spaces)
    >>> rewards, rewards.scale, rewards.shift, rewards.table[0, :, 0].tolist()
    (costs 1 to 9, 8.0, -9.0, [[0.5, 0.0], [1.0, 0.5]])
    >>> rewards.to_user(2.0, steps=3)  # minus the expected cost of three steps
    -11.0
    """

    table: Array | None  # (H, X, Y|1, A), for finite spaces
    function: RewardFunction | None  # for real-valued spaces
    declared: Any  # in the user's units: (H, X, A), (H, X, Y, A), or the user's function
    takes: tuple[str, ...] = ()  # the arguments of the function, among x, y, a and h
    scale: float = 1.0
    shift: float = 0.0
    costs: bool = False  # whether costs were declared
    bounds: tuple[float, float] = (0.0, 1.0)  # the rewards that become 0 and 1
    law: RewardLaw | None = None  # of unknown or random rewards, which have no table here
    recorded: Recorded = "always"  # "coin": some random rewards are not recorded, at random

    @property
    def by_observation(self) -> bool:
        """Whether the reward depends on the observation."""
        return "y" in self.takes if self.table is None else self.table.shape[2] > 1

    @property
    def by_step(self) -> bool:
        """Whether the reward depends on the step."""
        return (
            "h" in self.takes if self.table is None else bool((self.table != self.table[0]).any())
        )

    @property
    def identity(self) -> bool:
        """Whether the user's units are those inside."""
        return (self.scale, self.shift) == (1.0, 0.0)

    def to_user(self, values: Any, steps: Any) -> Any:
        """Convert sums of rewards over a number of steps to the user's units."""
        return values if self.identity else self.scale * values + steps * self.shift

    def __repr__(self) -> str:
        low, high = self.bounds
        return (
            f"costs {-high + 0.0:g} to {-low:g}" if self.costs else f"rewards {low:g} to {high:g}"
        )

    def means(self, table: Array, horizon: int) -> Array:
        """Mean rewards in [0, 1], (..., H, X, Y|1, A), from a table of the law; can be traced."""
        assert self.law is not None
        inside = (self.law.mean(table) - self.shift) / self.scale
        shape = (*inside.shape[:-4], horizon, *inside.shape[-3:])
        return namespace(table).broadcast_to(inside, shape)

    def with_horizon(self, horizon: int) -> Rewards:
        """The same rewards for another horizon, if they do not depend on the step."""
        if self.table is None:
            return self
        longer = np.repeat(self.table[:1], horizon, axis=0)
        return self._replace(table=longer, declared=np.repeat(self.declared[:1], horizon, axis=0))


def rewards_of(given: Given, spaces: Spaces, kernel: bool = False) -> tuple[Rewards, list[Problem]]:
    """The rewards of a declaration, and the problems of its arguments.

    ``kernel`` says whether the program returns a reward kernel. Its law is found later.
    """
    declared = [name for name in ("reward", "cost") if getattr(given, name) is not None]
    bounds, problems = _bounds(given)
    problems += _recorded_problems(given, kernel)
    if kernel:
        return _random(given, declared, bounds, spaces, problems)
    if len(declared) != 1:
        got = " and ".join(declared) or "neither reward nor cost"
        remedy = "Costs are positive numbers: cost=c means reward=-c."
        wrong = Problem("reward", got, "exactly one of reward and cost", remedy)
        return _nothing(spaces), [wrong, *problems]
    numbers, where = given.numbers, given.where
    if callable(numbers) and not isinstance(numbers, Distribution):
        try:
            call = recognised(where, numbers)
        except KernelError as error:
            return _nothing(spaces), [error.problem, *problems]
        if not spaces.finite:
            problems += traced_problems(where, call, spaces)
            return _traced(given, call, bounds), problems
        table, found = from_function(where, call, spaces)
    else:
        table, found = from_array(where, numbers, spaces)
    problems += found
    if table is None or found:
        return _nothing(spaces), problems
    problems += _outside(where, table, bounds, spaces)
    if bounds is not None and spaces.terminal:
        bounds = min(bounds[0], 0.0), max(bounds[1], 0.0)
    rewards = _scaled(0.0 - table if where == "cost" else table, where, bounds)
    if not np.isfinite(rewards.scale):
        got = f"a range from {table.min():.6g} to {table.max():.6g}"
        return _nothing(spaces), [*problems, Problem(where, got, "a range that is finite")]
    return (_full(rewards, spaces.horizon) if spaces.finite else _by_state(rewards)), problems


def _recorded_problems(given: Given, kernel: bool) -> list[Problem]:
    expected = '"always" or "coin"'
    if not isinstance(given.recorded, str) or given.recorded not in get_args(Recorded):
        return [Problem("rewards_recorded", shown(given.recorded), expected)]
    if given.recorded == "coin" and not kernel:
        remedy = "Known rewards need not be recorded: leave out rewards_recorded."
        return [Problem("rewards_recorded", '"coin"', "a reward kernel in Kernels", remedy)]
    return []


def _random(
    given: Given,
    declared: list[str],
    bounds: tuple[float, float] | None,
    spaces: Spaces,
    problems: list[Problem],
) -> tuple[Rewards, list[Problem]]:
    """The units of unknown or random rewards, and the problems of the arguments."""
    problems = list(problems)
    if declared:
        got = f"{' and '.join(declared)} in the decorator, and a reward kernel in Kernels"
        remedy = "Leave out one of them: known rewards are declared in the decorator only."
        problems.append(Problem("reward", got, "one of the two", remedy))
    if given.reward_range is None:
        remedy = "Write reward_range=(low, high), the smallest and the largest possible reward."
        expected = "the range of the rewards, which a reward kernel requires"
        problems.append(Problem("reward_range", "None", expected, remedy))
    if not spaces.finite:
        got, expected = "a reward kernel", "known rewards if states or observations are real-valued"
        remedy = "Declare reward= or cost= in the decorator, or use finite spaces."
        problems.append(Problem("reward", got, expected, remedy))
        return _nothing(spaces), problems
    low, high = bounds or (0.0, 1.0)
    if spaces.terminal:
        low, high = min(low, 0.0), max(high, 0.0)
    recorded: Recorded = "coin" if given.recorded == "coin" else "always"
    rewards = Rewards(
        None,
        None,
        None,
        scale=high - low,
        shift=low,
        bounds=(low, high),
        recorded=recorded,
    )
    return rewards, problems


def units(low: float, high: float) -> tuple[float, float, float, float]:
    """The rewards that become 0 and 1, scale and shift, for rewards between two numbers.

    Examples
    --------
    >>> units(0.25, 1.0)
    (0.0, 1.0, 1.0, 0.0)
    >>> units(-100.0, 10.0)
    (-100.0, 10.0, 110.0, -100.0)
    >>> units(5.0, 5.0)
    (5.0, 6.0, 1.0, 5.0)
    """
    if low >= 0 and high <= 1:
        return 0.0, 1.0, 1.0, 0.0
    return (low, high, high - low, low) if high > low else (low, low + 1.0, 1.0, low)


def _nothing(spaces: Spaces) -> Rewards:
    """Rewards in place of unusable ones."""
    X, _, A, H, _ = spaces
    if not spaces.finite:
        return Rewards(None, lambda h, x, y, a: jnp.zeros(()), None)
    zeros = np.zeros((H, len(names_of(X)), 1, len(A)))
    return Rewards(zeros, None, zeros[:, :, 0])


def _bounds(given: Given) -> tuple[tuple[float, float] | None, list[Problem]]:
    """The declared range, None if there is none, and its problems."""
    if given.reward_range is None:
        return None, []
    numbers, problems = as_numbers("reward_range", given.reward_range, "two numbers")
    traced = isinstance(numbers, jax.core.Tracer)
    pair = None if numbers is None or traced else np.asarray(numbers)
    if pair is not None and pair.shape == (2,):
        low, high = map(float, pair)
        if np.isfinite(high - low) and low < high:
            return (low, high), []
    if not problems:
        remedy = f"Write reward_range=(low, high), the smallest and the largest {given.where}."
        expected = "two finite numbers, the smaller one first"
        problems = [Problem("reward_range", shown(given.reward_range), expected, remedy)]
    return None, problems


def _signed(where: str, bounds: tuple[float, float]) -> tuple[float, float]:
    """The range of the rewards, from that of the declared rewards or costs."""
    low, high = bounds
    return (-high, -low) if where == "cost" else (low, high)


def _outside(
    where: str, table: Array, bounds: tuple[float, float] | None, spaces: Spaces
) -> list[Problem]:
    """Problems for numbers outside the declared range."""
    if bounds is None:
        return []
    low, high = bounds
    expected = f"a number in reward_range, [{low:g}, {high:g}]"
    remedy = "Widen reward_range."
    # the zeros of terminal states may be outside the declared range
    outside = ((table < low) | (table > high)) & ~after_end(table.shape, spaces)
    return [
        Problem(
            where, f"{table[index]:.6g}", expected, remedy, reward_entry(index, table.shape, spaces)
        )
        for index in map(tuple, np.argwhere(outside)[:LISTED])
    ]


def _scaled(rewards: Array, where: str, bounds: tuple[float, float] | None) -> Rewards:
    """Known numbers (H|1, X, Y|1, A) scaled to [0, 1]."""
    low, high = (rewards.min(), rewards.max()) if bounds is None else _signed(where, bounds)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high, scale, shift = units(float(low), float(high))
        same = (scale, shift) == (1.0, 0.0)
        inside = rewards if same else np.clip((rewards - shift) / scale, 0, 1)
    return Rewards(inside, None, rewards, (), scale, shift, where == "cost", (low, high))


def _full(rewards: Rewards, horizon: int) -> Rewards:
    """One table per step, for finite spaces."""
    parts: tuple[Any, Any] = rewards.table, rewards.declared
    table, numbers = (np.repeat(part, horizon // len(part), axis=0) for part in parts)
    return rewards._replace(
        table=table, declared=numbers if numbers.shape[2] > 1 else numbers[:, :, 0]
    )


def _by_state(rewards: Rewards) -> Rewards:
    """The same rewards as a function, for finitely many states and real-valued observations."""
    assert rewards.table is not None
    steps, table = len(rewards.table) > 1, rewards.table[:, :, 0]

    def reward(h: Array | int, x: Array, y: Array, a: Array) -> Array:
        return jnp.asarray(table)[h if steps else 0, x, a]

    return rewards._replace(
        table=None,
        function=reward,
        declared=rewards.declared[:, :, 0] if steps else rewards.declared[0, :, 0],
        takes=("x", "a", "h") if steps else ("x", "a"),
    )


def _traced(given: Given, call: Recognised, bounds: tuple[float, float] | None) -> Rewards:
    """A function that JAX traces; its numbers must be in [0, 1] or in the declared range."""
    cost = given.where == "cost"
    low, high, scale, shift = units(*_signed(given.where, bounds or (0.0, 1.0)))
    same = not cost and (scale, shift) == (1.0, 0.0)

    def reward(h: Array | int, x: Array, y: Array, a: Array) -> Array:
        value = jnp.asarray(call(h=h + 1, x=x, y=y, a=a), dtype=float)
        return value if same else ((-value if cost else value) - shift) / scale

    declared = negated(given.cost) if cost else given.reward
    return Rewards(None, reward, declared, call.takes, scale, shift, cost, (low, high))
