"""What is known about a policy: its model, horizon and values, saved together with it."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.precision import Array

CARD = ("horizon", "about")  # the arrays of a card in a file


@runtime_checkable
class Named(Protocol):
    """A declaration or a world."""

    @property
    def name(self) -> str:
        """The name of the model."""


class PolicyCard(NamedTuple):
    """What is known about a policy. Values are in the user's units; None if they are unknown.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger", horizon=2)
    >>> card = history_tree()(tiger.pomdp).named(tiger).policy.card
    >>> card.horizon, card.model, round(card.value, 3), round(card.upper, 3)
    (2, 'tiger', 1.852, 1.852)
    """

    horizon: int | None = None
    model: str = ""
    value: float | None = None  # in the model it was planned for
    lower: float | None = None  # certified lower bound on its value
    upper: float | None = None  # upper bound on the optimum
    episodes: int | None = None  # that it was learned from
    date: str = ""  # when it was saved, in UTC
    version: str = ""  # of the library that saved it

    def arrays(self) -> dict[str, Array]:
        """The card as arrays for a file, with the present date and version."""
        about = self._replace(date=datetime.now(UTC).isoformat(timespec="seconds"))
        about = about._replace(version=_version())
        known = {k: v for k, v in about._asdict().items() if k != "horizon" and v not in (None, "")}
        return {
            "horizon": np.array(-1 if self.horizon is None else self.horizon),
            "about": np.array(json.dumps(known, allow_nan=False)),
        }


@runtime_checkable
class Carded(Protocol):
    """A policy that is saved with a card."""

    @property
    def card(self) -> PolicyCard:
        """What is known about the policy."""

    def with_card(self, card: PolicyCard) -> Self:
        """The same policy with another card."""


def finite(value: Any) -> float | None:
    """A value as a float, None if it is not finite."""
    return float(value) if value is not None and math.isfinite(float(value)) else None


def card_of(path: str, parts: dict[str, Array]) -> PolicyCard:
    """The card in the arrays of a file, which is validated; empty for old formats."""
    if "horizon" not in parts or "about" not in parts:
        return PolicyCard()
    try:
        horizon, facts = int(parts["horizon"]), json.loads(str(parts["about"]))
        if parts["horizon"].shape != () or not isinstance(facts, dict):
            raise ValueError
        model, date, version = (_text(facts.get(k, "")) for k in ("model", "date", "version"))
        value, lower, upper = (_number(facts.get(k)) for k in ("value", "lower", "upper"))
        episodes = facts.get("episodes")
        if episodes is not None and (type(episodes) is not int or episodes < 0):
            raise ValueError
    except (TypeError, ValueError, RecursionError):
        problem = Problem("about", "text that is not a valid card", "the card of a saved policy")
        raise PolicyError(path, [problem]) from None
    known = horizon if horizon > 0 else None
    return PolicyCard(known, model, value, lower, upper, episodes, date, version)


def too_long(card: PolicyCard, steps: int) -> list[Problem]:
    """The problem of a history that is longer than the horizon."""
    if card.horizon is None or steps <= card.horizon:
        return []
    got, expected = f"{steps} observations", f"at most {card.horizon}, the horizon of the policy"
    return [Problem("history", got, expected, "The episode has ended.")]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _version() -> str:
    try:
        return metadata.version("homdp_ppl")
    except metadata.PackageNotFoundError:  # a copy that is not installed
        return "unknown"
