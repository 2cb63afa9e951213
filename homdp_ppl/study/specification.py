"""The specification of a study: models, rules, priors and seeds."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from errno import EFBIG
from pathlib import Path
from typing import Any, NamedTuple

from homdp_ppl.core import html
from homdp_ppl.core.checked import checked
from homdp_ppl.errors import UNKNOWN, ParameterError, Problem, did_you_mean, shown
from homdp_ppl.storage.atomic import reason_of
from homdp_ppl.study.defaults import EPISODES, EPSILON, EXPLORERS, PRIORS, SEEDS
from homdp_ppl.study.reveals import split_reveal
from homdp_ppl.study.sources import uses_prior

LISTS = ("models", "explorers", "priors")
MOST = 10**7  # episodes, seeds
RUNS = 100_000  # per study, each with a journal
CELLS = 4 * 10**8  # runs times episodes: a variable of a netCDF file has at most 4 GiB
LARGEST = 2**20  # bytes of a study file
SHOWN = 200  # characters of a value in an error
LONGEST = 4096  # characters of a model, rule or planner, which may be a path
# keys such as a.b.c with a hundred parts, for which tomllib needs unbounded time and memory
NESTED = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){100}""")
SPLIT = "Split it into several studies, for example one per model."


class Unit(NamedTuple):
    """A unit of work: a rule in a model under a prior, for a block of seeds.

    Examples
    --------
    >>> [
    ...     unit.name
    ...     for unit in Study(
    ...         ("tiger",), ("greedy",), seeds=4, block=2, priors=("declared",)
    ...     ).units()
    ... ]
    ['greedy in tiger, seeds 0 to 1', 'greedy in tiger, seeds 2 to 3']
    """

    model: str
    prior: str
    rule: str
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """A description of the unit."""
        under = "" if self.prior == "declared" else f", {self.prior} prior"
        seeds = (
            f"seeds {self.seeds[0]} to {self.seeds[-1]}"
            if len(self.seeds) > 1
            else f"seed {self.seeds[0]}"
        )
        return f"{self.rule} in {self.model}{under}, {seeds}"


@dataclass(frozen=True)
class Study:
    """A comparison of several rules in several models with the same seeds.

    Attributes
    ----------
    models
        Names of the model zoo with options, ``.POMDP`` files, or ``path/to/file.py:name``.
    explorers
        Rules with options, as in ``hop_b:scale=0.1``. With ``reveal=0.2``, every state is revealed
        with probability 0.2.
    episodes
        Episodes per run.
    seeds
        Number of runs per rule, with the seeds 0, 1, 2, ...
    planner
        A planner with options; "auto" chooses one for each model.
    horizon
        The horizon, instead of the models' own.
    priors
        The priors of rules that depend on one: "declared", or "flat" and "sparse" Dirichlet rows
        for a learner that knows no structure.
    epsilon
        Threshold on the average regret for the number of episodes until it stays below.
    block
        Seeds per unit of work; by default all of them.

    Examples
    --------
    >>> study = Study(
    ...     ("tiger",),
    ...     ("greedy", "posterior_sampling"),
    ...     episodes=100,
    ...     seeds=4,
    ...     priors=("declared", "flat"),
    ... )
    >>> [unit.name for unit in study.units()]  # doctest: +NORMALIZE_WHITESPACE
    ['greedy in tiger, seeds 0 to 3', 'posterior_sampling in tiger, seeds 0 to 3',
     'posterior_sampling in tiger, flat prior, seeds 0 to 3']
    """

    models: tuple[str, ...]
    explorers: tuple[str, ...] = EXPLORERS
    episodes: int = EPISODES
    seeds: int = SEEDS
    planner: str = "auto"
    horizon: int | None = None
    priors: tuple[str, ...] = PRIORS
    epsilon: float = EPSILON
    block: int | None = None

    def __post_init__(self) -> None:
        for name in LISTS:
            # lists and tuples define the same study, also after it is read from a file
            if isinstance(value := getattr(self, name), list):
                object.__setattr__(self, name, tuple(value))
        problems = _problems(self)
        if problems:
            raise ParameterError("study", problems)

    def _repr_html_(self) -> str:
        named = [(name, ", ".join(v) if isinstance(v, tuple) else v) for name, v in self._chosen]
        return html.facts("Study", named)

    @property
    def _chosen(self) -> list[tuple[str, Any]]:
        """The fields that have a value."""
        found = [(each.name, getattr(self, each.name)) for each in fields(self)]
        return [(name, value) for name, value in found if value is not None]

    @checked
    def units(
        self, continuous: Collection[str] = (), bayesian: Collection[str] | None = None
    ) -> Iterator[Unit]:
        """The units of work, in the order of the study.

        Parameters
        ----------
        continuous
            Models that have the declared prior only, because they have no tables.
        bayesian
            Rules that depend on the prior; by default determined from the rules.
        """
        bayesian = self.bayesian() if bayesian is None else bayesian
        block = self.block or self.seeds
        for model in self.models:
            for prior in self.priors if model not in continuous else ("declared",):
                for rule in self.explorers:
                    if prior != "declared" and rule not in bayesian:
                        continue
                    for first in range(0, self.seeds, block):
                        yield Unit(
                            model, prior, rule, tuple(range(first, min(first + block, self.seeds)))
                        )

    def bayesian(self) -> list[str]:
        """The rules that depend on the prior, if there are several priors."""
        if self.priors == ("declared",):
            return []
        return [rule for rule in self.explorers if uses_prior(split_reveal(rule).rule)]

    def to_json(self) -> dict[str, Any]:
        """The attributes as a dictionary for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    @checked
    def from_mapping(cls, given: Mapping[str, Any], subject: str = "study") -> Study:
        """A study from a mapping; unknown keys and invalid values raise ParameterError."""
        known = [field.name for field in fields(cls)]
        problems = [
            Problem(
                "key",
                f"{UNKNOWN}key {_shown(name)}",
                f"a study has: {', '.join(known)}",
                _near(name, known),
            )
            for name in given
            if name not in known
        ]
        if "models" not in given:
            problems.append(Problem("models", "nothing", 'models, as in models = ["tiger"]'))
        if problems:
            raise ParameterError(subject, problems)
        return cls(**given)

    @classmethod
    @checked
    def from_toml(cls, path: str | Path) -> Study:
        """Read a TOML file whose keys are the attributes of a study.

        Parameters
        ----------
        path
            The file.
        """
        path = Path(path)
        try:
            with open(path, "rb") as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise OSError(EFBIG, f"more than {LARGEST:,} bytes")
            text = content.decode()
            if NESTED.search(text):
                raise ValueError("a key with too many parts")
            given = tomllib.loads(text)
        except OSError as error:
            raise ParameterError(
                str(path),
                [Problem("file", reason_of(error), "a readable study file")],
            ) from None
        except (ValueError, RecursionError) as error:  # also integers of thousands of digits
            got = str(error)[:SHOWN]
            raise ParameterError(str(path), [Problem("file", got, "a TOML file")]) from None
        return cls.from_mapping(given, str(path))


def _shown(value: object) -> str:
    """A value for an error message, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer with thousands of digits
        text = "a very long number"
    if " at 0x" in text:
        return shown(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _near(name: object, known: Collection[str]) -> str:
    return did_you_mean(name, known) if isinstance(name, str) and len(name) <= SHOWN else ""


def _problems(study: Study) -> list[Problem]:
    problems = []
    for name in LISTS:
        value = getattr(study, name)
        if not (
            isinstance(value, tuple) and value and all(isinstance(text, str) for text in value)
        ):
            problems.append(Problem(name, _shown(value), "a list of at least one string"))
        elif len(set(value)) < len(value):
            problems.append(Problem(name, _shown(", ".join(value)), "no duplicates"))
        elif max(map(len, value)) > LONGEST:
            expected = f"strings of at most {LONGEST} characters"
            problems.append(Problem(name, _shown(max(value, key=len)), expected))
    for name, optional in (
        ("episodes", False),
        ("seeds", False),
        ("horizon", True),
        ("block", True),
    ):
        value = getattr(study, name)
        if not (value is None and optional) and (type(value) is not int or not 1 <= value <= MOST):
            problems.append(Problem(name, _shown(value), f"an integer from 1 to {MOST:,}"))
    if not isinstance(study.planner, str) or len(study.planner) > LONGEST:
        problems.append(Problem("planner", _shown(study.planner), "the name of a planner"))
    if type(study.epsilon) not in (int, float) or not 0 < study.epsilon < float("inf"):
        problems.append(Problem("epsilon", _shown(study.epsilon), "a number above 0"))
    if not problems:
        problems += [
            Problem(
                "priors",
                f"{UNKNOWN}prior {_shown(prior)}",
                f"the priors are: {', '.join(PRIORS)}",
                _near(prior, PRIORS),
            )
            for prior in study.priors
            if prior not in PRIORS
        ]
        if not problems and "declared" not in study.priors:
            remedy = f"Use {','.join(('declared', *study.priors))}."
            problems.append(
                Problem("priors", ", ".join(study.priors), "the declared prior in the list", remedy)
            )
    return problems or _size_problems(study)


def _size_problems(study: Study) -> list[Problem]:
    """Problems of studies that are too large for a file of results."""
    kinds = len(study.models) * len(study.priors) * len(study.explorers)
    runs = kinds * study.seeds
    if runs > RUNS:
        combinations = f"{kinds} combinations of model, prior and rule"
        got = f"{study.seeds:,} seeds for {combinations}, {runs:,} runs in total"
        return [Problem("seeds", got, f"at most {RUNS:,} runs in a study", SPLIT)]
    if runs * study.episodes > CELLS:
        got = f"{study.episodes:,} episodes in each of {runs:,} runs"
        expected = f"at most {CELLS:,} episodes in total, which is the limit of results.nc"
        return [Problem("episodes", got, expected, SPLIT)]
    return []
