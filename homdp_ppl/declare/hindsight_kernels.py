"""The tables of declared hindsight: labels of states, and the probability that they are revealed.

A label table has the probabilities of the labels of each state. A mechanism has two tables, for
the states with an observation and an action, and for the last state of an episode. Their rows are
the probabilities that the item is missing and that it is revealed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import Distribution

from homdp_ppl.core.hindsight_form import HINDSIGHT, LABEL, LAST, REVEALED, HindsightForm
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.distributions import call_kernel, is_function, row, support_of
from homdp_ppl.declare.signatures import KernelError, arguments
from homdp_ppl.declare.spaces import declared_observations
from homdp_ppl.errors import Problem, shown
from homdp_ppl.precision import Array

RevealUnit: TypeAlias = Literal["step", "episode"]

COARSE = "Write label=[0, 0, 1], the label of each state, or label=lambda x: labels[x]."
CONSTANT = "Write revealed=0.3, or revealed=numpyro.sample(...): the same for every state."
AT_END = (
    "The probability is also needed for the state after the last action. There, the function is "
    "called with y = None and a = None. Write `if a is None: ...` for this case."
)


def hindsight_tabulators(kernels: Any, spaces: Spaces) -> dict[str, Callable[[], Array]]:
    """For each declared part of hindsight, a function that makes its table."""
    tables: dict[str, Callable[[], Array]] = {}
    if kernels.label is not None:
        tables[LABEL] = lambda: label_table(kernels.label, spaces)
    if kernels.revealed is not None:
        tables[REVEALED] = lambda: mechanism(kernels.revealed, spaces)
        tables[LAST] = lambda: mechanism_at_end(kernels.revealed, spaces)
    return tables


def label_table(kernel: Any, spaces: Spaces) -> Array:
    """The probabilities of the labels of each state, (X, Z); can be traced.

    Raises :class:`KernelError` for a kernel that is neither probabilities of finitely many labels
    nor one label per state.
    """
    X = len(spaces.states)
    if not is_function(kernel):
        return _label_array(kernel, X)
    first = _label_of(kernel, 0)
    if isinstance(first, Distribution) and not isinstance(first, dist.Delta):
        Z = len(support_of(LABEL, first))

        def one(x: Array) -> Array:
            return row(LABEL, call_kernel(LABEL, kernel, {"x": x}), Z)

        return jax.vmap(one)(jnp.arange(X))
    return _coarse([_label(_label_of(kernel, x)) for x in range(X)])


def _label_of(kernel: Callable[..., Any], x: int) -> Any:
    """What a kernel returns for one state; labels that depend on no site are concrete numbers."""
    with jax.ensure_compile_time_eval():
        return call_kernel(LABEL, kernel, {"x": jnp.asarray(x)})


def _label(given: Any) -> int:
    """The label of one state, from an integer or a law of one value."""
    value = given.v if isinstance(given, dist.Delta) else given
    if isinstance(value, jax.core.Tracer):
        got, remedy = "a label that depends on a site", "Return the probabilities of all labels."
        raise KernelError(Problem(LABEL, got, "one label per state", remedy))
    whole = _is_number(value) and np.asarray(value).dtype.kind in "iub"
    if not whole or np.ndim(value) or int(value) < 0:
        expected = "a NumPyro distribution of labels, or a label: an integer of at least 0"
        raise KernelError(Problem(LABEL, shown(value), expected, COARSE))
    return int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.generic | np.ndarray | jax.Array)


def _label_array(given: Any, states: int) -> Array:
    if isinstance(given, Distribution):
        remedy = "Write label=lambda x: dist.Categorical(probs=confusion[x])."
        raise KernelError(Problem(LABEL, "a distribution", "a function of x, or an array", remedy))
    try:
        array = jnp.asarray(given)
    except (TypeError, ValueError):
        expected = "an array (state, label), a label per state, or a function of x"
        raise KernelError(Problem(LABEL, type(given).__name__, expected, COARSE)) from None
    if array.shape == (states,) and jnp.issubdtype(array.dtype, jnp.integer):
        return _coarse([_label(label) for label in np.asarray(given).tolist()])
    if array.ndim != 2 or array.shape[0] != states or not array.shape[1]:
        got = f"an array of shape {array.shape}"
        expected = f"shape ({states}, labels), or a label for each of the {states} states"
        raise KernelError(Problem(LABEL, got, expected, COARSE))
    return array.astype(jnp.result_type(float))


def _coarse(labels: list[int]) -> Array:
    return jnp.eye(max(labels) + 1)[np.array(labels)]


def mechanism(kernel: Any, spaces: Spaces) -> Array:
    """The mechanism at steps with an observation and an action, (H|1, X|1, Y|1, A|1, 2)."""
    X, Y, A, H = declared_observations(spaces).sizes
    if not is_function(kernel):
        return _pair(_probability(kernel)).reshape(1, 1, 1, 1, 2)
    takes = arguments(REVEALED, kernel)
    sizes = {
        name: n if name in takes else 1 for name, n in (("h", H), ("x", X), ("y", Y), ("a", A))
    }

    def at(h: Array, x: Array, y: Array, a: Array) -> Array:
        return _pair(_probability(_called(kernel, {"h": h + 1, "x": x, "y": y, "a": a})))

    for axis in reversed(range(4)):  # the outermost vmap is the first axis
        at = jax.vmap(at, in_axes=tuple(0 if k == axis else None for k in range(4)))
    table = at(*map(jnp.arange, sizes.values()))
    if spaces.terminal and sizes["y"] > 1:  # a place for "ended", which is never used
        unused = jnp.full((*table.shape[:2], 1, *table.shape[3:]), 0.5)
        table = jnp.concatenate([table, unused], axis=2)
    return table


def mechanism_at_end(kernel: Any, spaces: Spaces) -> Array:
    """The mechanism for the last state of an episode, after 0 to H steps, (H + 1|1, X|1, 2)."""
    if not is_function(kernel):
        return _pair(_probability(kernel)).reshape(1, 1, 2)
    takes = arguments(REVEALED, kernel)

    def at(h: Array, x: Array) -> Array:
        point = {"h": h + 1, "x": x, "y": None, "a": None}
        try:
            return _pair(_probability(_called(kernel, point)))
        except TypeError as error:
            if {"y", "a"} & set(takes):
                error.add_note(AT_END)
            raise

    X, H = len(spaces.states), spaces.horizon
    rows = jax.vmap(jax.vmap(at, in_axes=(None, 0)), in_axes=(0, None))
    return rows(
        jnp.arange(H + 1) if "h" in takes else jnp.arange(1),
        jnp.arange(X) if "x" in takes else jnp.arange(1),
    )


def _called(kernel: Callable[..., Any], point: dict[str, Any]) -> Any:
    return call_kernel(REVEALED, kernel, point)


def _probability(given: Any) -> Array:
    """A probability as one number."""
    expected = "the probability that the state is revealed: one number"
    if isinstance(given, Distribution):
        remedy = "Return its probability instead of dist.Bernoulli."
        raise KernelError(Problem(REVEALED, "a distribution", expected, remedy))
    if not _is_number(given):
        raise KernelError(Problem(REVEALED, type(given).__name__, expected, CONSTANT))
    value = jnp.asarray(given, dtype=jnp.result_type(float))
    if value.shape:
        raise KernelError(Problem(REVEALED, f"an array of shape {value.shape}", expected, CONSTANT))
    return value


def _pair(probability: Array) -> Array:
    return jnp.stack([1 - probability, probability])


def form_of(tables: Mapping[str, Any], unit: RevealUnit) -> HindsightForm | None:
    """The form of declared hindsight, from the tables of a structure; None if there is none."""
    shapes = {name: tables[name].reference.shape for name in HINDSIGHT if name in tables}
    if not shapes:
        return None
    ways = [name for name in (REVEALED, LAST) if name in shapes]
    known = all(bool(np.all(tables[name].known)) for name in ways)
    by_state = any(shapes[name][-4 if name == REVEALED else -2] > 1 for name in ways)
    return HindsightForm(**shapes, by_episode=unit == "episode", ignorable=known and not by_state)


def refused_parts(parts: Collection[str], unit: Any) -> list[Problem]:
    """Problems of parts of hindsight that are declared for real-valued spaces."""
    expected = "finitely many states and observations"
    named = [*sorted(parts), *["reveal_unit"] * (unit != "step")]
    remedy = "Leave it out: the states themselves are revealed. Or use finite spaces."
    return [Problem(part, "real-valued spaces", expected, remedy) for part in named]


def unit_problems(unit: Any, form: HindsightForm | None) -> list[Problem]:
    """Problems of ``reveal_unit``."""
    if unit not in ("step", "episode"):
        return [Problem("reveal_unit", shown(unit), '"step" or "episode"')]
    if unit == "step":
        return []
    if form is None or form.revealed is None:
        expected = '"step", or Kernels(revealed=...) with a constant'
        return [Problem("reveal_unit", '"episode" without revealed', expected, CONSTANT)]
    if not form.is_coin:
        got = '"episode", although the probability depends on the step'
        return [Problem("reveal_unit", got, "a constant probability per episode", CONSTANT)]
    return []
