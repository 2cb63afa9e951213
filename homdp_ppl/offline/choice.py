"""`choose`: the policy with the largest certified value, unless the present one may be better."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple, final

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.offline.evaluation import number

if TYPE_CHECKING:
    from rich.table import Table

Guarantee = Literal["frequentist", "Bayesian"]


class Candidate(NamedTuple):
    """A policy with bounds on its value, in the user's units.

    Examples
    --------
    >>> Candidate("greedy", None, 1.0, 2.0)
    greedy: value between 1 and 2
    """

    name: str
    policy: GraphPolicy | None  # None: what the behaviour did, which is no known policy
    low: float
    high: float
    gain: float | None = None  # lower bound on the value minus that of the baseline

    def __repr__(self) -> str:
        return f"{self.name}: value between {self.low:.4g} and {self.high:.4g}"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """The policy that a log justifies. Create it with :func:`choose`.

    With probability 1 - delta, all bounds hold at once. For logs with missing states they are
    quantiles of the posterior, and ``guarantee`` is "Bayesian".

    Attributes
    ----------
    model, episodes, delta
        The name of the declaration, the number of episodes, and the allowed probability of error.
    guarantee
        "frequentist", or "Bayesian" if states are missing.
    chosen
        The chosen policy with its bounds.
    baseline
        The baseline with its bounds; None if there was none.
    candidates
        All candidates, those with the largest lower bounds first.
    notes
        What was left out, and why.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 200), world, uniform_policy(world))
    >>> choice = offline.choose(world.homdp, log)
    >>> choice.kept, bool(choice.chosen.low > choice.baseline.high)
    (False, True)
    """

    model: str
    episodes: int
    delta: float
    guarantee: Guarantee
    chosen: Candidate
    baseline: Candidate | None
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether no candidate certifiably beats the baseline, so that it is kept."""
        return self.chosen is self.baseline

    @property
    def policy(self) -> GraphPolicy | None:
        """The chosen policy; None if the behaviour of the log is kept and is not known."""
        return self.chosen.policy

    @property
    def words(self) -> str:
        """The decision in words."""
        bounds = f"value between {self.chosen.low:.4g} and {self.chosen.high:.4g}"
        if self.baseline is None:
            return f"deploy {self.chosen.name}: {bounds}"
        if self.kept:
            return f"keep {self.baseline.name}: no candidate certifiably beats it"
        return (
            f"deploy {self.chosen.name}: {bounds}, and at least {self.chosen.gain:.4g} more than "
            f"{self.baseline.name}"
        )

    def to_table(self) -> Table:
        """The candidates as a table; print it with ``rich.print``."""
        from rich.markup import escape as plain
        from rich.table import Table

        table = Table("policy", title=plain(self._title), title_justify="left")
        for head in HEADS:
            table.add_column(head, justify="right")
        for one in self._listed:
            table.add_row(plain(one.name), *_cells(one))
        return table

    @property
    def _listed(self) -> list[Candidate]:
        more = [] if self.baseline is None else [self.baseline]
        return [*more, *self.candidates]

    @property
    def _title(self) -> str:
        kind = "certified" if self.guarantee == "frequentist" else "posterior"
        chance = f"{100 * (1 - self.delta):.3g} %"
        noun = f"{self.episodes:,} episode{'s' * (self.episodes != 1)}"
        return f"Choice for {self.model!r} from {noun} ({kind}, {chance})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(word)}</th>" for word in ("policy", *HEADS))
        rows = "".join(
            f"<tr><th>{escape(one.name)}</th>"
            + "".join(f"<td>{cell}</td>" for cell in _cells(one))
            + "</tr>"
            for one in self._listed
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (
            f"<table><caption>{escape(self._title)}: {escape(self.words)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><ul>{notes}</ul>"
        )

    def __repr__(self) -> str:
        width = max(len(one.name) for one in self._listed)
        lines = [self._title, f"  {self.words}"]
        lines += [f"  {one.name:<{width}}  [{one.low:.4g}, {one.high:.4g}]" for one in self._listed]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


HEADS = ("low", "high", "gain at least")


def _cells(one: Candidate) -> list[str]:
    parts = (one.low, one.high, one.gain)
    return ["" if part is None else number(part) for part in parts]


def decide(
    candidates: list[Candidate], baseline: Candidate | None
) -> tuple[Candidate, tuple[Candidate, ...]]:
    """The candidate with the largest lower bound that beats the baseline, and all in this order."""
    ordered = tuple(sorted(candidates, key=lambda one: -one.low))
    if baseline is None:
        return ordered[0], ordered
    beating = [one for one in ordered if one.gain is not None and one.gain > 0]
    return (beating[0] if beating else baseline), ordered
