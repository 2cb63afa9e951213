"""Pages about logs: the evaluation of a policy, and the choice of one. Each is self-contained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.offline.choice import Choice
from homdp_ppl.offline.evaluation import Evaluation
from homdp_ppl.offline.evaluation import number as digits
from homdp_ppl.report.formatting import counted
from homdp_ppl.report.intervals import draw_choice, draw_evaluation
from homdp_ppl.report.page.html import (
    Html,
    document,
    exact,
    number,
    paragraph,
    picture,
    table,
    tag,
    text,
)
from homdp_ppl.storage.atomic import atomic_write

CERTIFIED = (
    "The certified interval holds for all policies at once, however the recorded actions were "
    "chosen, if the declaration is right."
)
BELIEF = "The posterior interval also needs the declared prior to be right."
WEIGHTS = (
    "Weighted estimates compare what the policy would do with what was done. They hardly depend on "
    "the declaration, but need to know how the recorded actions were chosen."
)


def write_evaluation(
    evaluation: Evaluation, path: str | Path, facts: Mapping[str, str] | None = None
) -> Path:
    """Write a page about an evaluation; ``facts`` are listed at its end."""
    title = f"Value of a policy: {evaluation.model}"
    head = ("estimate", "value", "low", "high", "interval")
    rows = [
        [text(name), _number(value), _number(low), _number(high), tag("span", text(kind))]
        for name, value, low, high, kind in evaluation.rows
    ]
    caption = f"{counted(evaluation.episodes, 'episode')}; values in the units of the rewards"
    checks = [
        tag("dt", text(name)) + tag("dd", text(f"{words[0].upper()}{words[1:]}."))
        for name, words in evaluation.tests
    ]
    content = [
        tag("h1", text(title)),
        paragraph(_finding(evaluation), class_="lead"),
        _warnings([words for _, words in evaluation.tests if _alarming(words)]),
        tag("h2", text("Estimates")),
        picture(
            lambda: draw_evaluation(evaluation),
            "Intervals of the value of the policy, one line per estimate",
            "Intervals and estimates of the value of the policy.",
        ),
        table(head, rows, caption),
        paragraph(CERTIFIED, BELIEF, WEIGHTS),
        tag("h2", text("Tests of the declaration")) if checks else Html(""),
        tag("dl", *checks),
        _notes(evaluation.notes),
        _facts(
            {
                "behaviour": evaluation.behaviour,
                "effective episodes": number(evaluation.effective),
                "delta": number(evaluation.delta),
                **(facts or {}),
            }
        ),
    ]
    return _write(path, title, content)


def write_choice(choice: Choice, path: str | Path, facts: Mapping[str, str] | None = None) -> Path:
    """Write a page about a choice; ``facts`` are listed at its end."""
    title = f"Choice of a policy: {choice.model}"
    listed = [*([] if choice.baseline is None else [choice.baseline]), *choice.candidates]
    rows = [
        [
            text(one.name) + (_mark("chosen") if one is choice.chosen else ""),
            _number(one.low),
            _number(one.high),
            _number(one.gain),
        ]
        for one in listed
    ]
    chance = f"{100 * (1 - choice.delta):.3g}%"
    sure = (
        f"With probability {chance}, all bounds hold at once, so that the number of candidates "
        "does not matter."
        if choice.guarantee == "frequentist"
        else f"States are missing, so bounds are quantiles of the posterior at {chance}."
    )
    words = choice.words
    content = [
        tag("h1", text(title)),
        paragraph(f"{words[0].upper()}{words[1:]}.", class_="lead"),
        paragraph(
            sure,
            "A candidate is chosen only if its lower bound beats what is known of the baseline."
            if choice.baseline is not None
            else "",
        ),
        tag("h2", text("Candidates")),
        picture(
            lambda: draw_choice(choice),
            "Bounds on the value of each candidate, one line per candidate",
            "Bounds on the value of each candidate. The dotted line is the upper bound of the "
            "baseline.",
        ),
        table(
            ("policy", "low", "high", "gain at least"),
            rows,
            f"{counted(choice.episodes, 'episode')}; values in the units of the rewards",
        ),
        _decisions(choice.policy),
        _notes(choice.notes),
        _facts({"guarantee": choice.guarantee, "delta": number(choice.delta), **(facts or {})}),
    ]
    return _write(path, title, content)


def _finding(evaluation: Evaluation) -> str:
    """The main result in words."""
    chance = f"{100 * (1 - evaluation.delta):.3g}%"
    if evaluation.certified is None:
        belief = evaluation.belief
        return (
            f"The value of the policy is between {digits(belief.low)} and {digits(belief.high)} "
            f"with posterior probability {chance}. States are missing, so nothing is certified."
        )
    low, high = (float(end) for end in evaluation.certified)
    return (
        f"The value of the policy is between {digits(low)} and {digits(high)}, certified at "
        f"{chance}; the posterior mean is {digits(evaluation.belief.mean)}."
    )


def _alarming(words: str) -> bool:
    return "disagree" in words or "violated" in words


def _warnings(found: list[str]) -> Html:
    if not found:
        return Html("")
    listed = tag("ul", *(tag("li", text(words)) for words in found))
    return tag("div", paragraph("The declaration may be wrong:"), listed, class_="warning")


def _notes(notes: tuple[str, ...]) -> Html:
    if not notes:
        return Html("")
    return Html(tag("h2", text("Notes")) + tag("ul", *(tag("li", text(note)) for note in notes)))


def _facts(facts: Mapping[str, str]) -> Html:
    listed = (tag("dt", text(key)) + tag("dd", text(value)) for key, value in facts.items())
    return Html(tag("h2", text("Settings and data")) + tag("dl", *listed))


def _decisions(policy: GraphPolicy | None) -> Html:
    """The first decisions of a policy."""
    if policy is None or policy.names is None:
        return Html("")
    observations, actions = policy.names
    rows = []
    for y, seen in enumerate(observations):
        chances = np.asarray(policy.probabilities[policy.start[y]])
        taken = [
            f"{actions[a]}" + (f" ({chances[a]:.0%})" if chances[a] < 1 else "")
            for a in np.argsort(-chances, kind="stable")
            if chances[a] > 0
        ]
        rows.append([text(seen), text(", ".join(taken))])
    caption = "The action after the first observation; the policy file has all steps"
    return Html(
        tag("h2", text("First decision")) + table(("first observation", "action"), rows, caption)
    )


def _number(value: float | None) -> Html:
    """A number with as many digits as in the tables of the command line."""
    return text("") if value is None or not np.isfinite(value) else exact(value, digits(value))


def _mark(word: str) -> Html:
    return Html(" " + tag("span", text(word), class_="mark"))


def _write(path: str | Path, title: str, content: list[Html]) -> Path:
    place = Path(path)
    atomic_write(place, document(title, *content).encode())
    return place
