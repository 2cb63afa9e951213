"""The model zoo: one model per file.

``models.load("tiger")`` returns the default world of a model, and ``models.load("tiger").homdp``
its declaration, including what is unknown. ``world.spaces.finite`` says whether states and
observations are finite.
"""

import sys
from collections.abc import Callable
from inspect import signature
from typing import Any

from homdp_ppl.core.checked import checked
from homdp_ppl.declare.model import World
from homdp_ppl.errors import HOMDPError, ParameterError, unknown
from homdp_ppl.models import (
    camera,
    checkup,
    delivery,
    diagnosis,
    fast_control,
    gaussian_screening,
    gaussian_tiger,
    hallway,
    imitation,
    light_dark,
    lock,
    low_rank,
    lower_bound,
    maze,
    meta_learning,
    random_tables,
    rocksample,
    scheduling,
    screening,
    sim_to_real,
    tiger,
    tiger_listen,
)

__all__ = ["MODELS", "load", "story"]

MODELS: dict[str, Callable[..., World]] = {
    "tiger": tiger.structured,
    "tiger_table": tiger.table,
    "tiger_listen": tiger_listen.structured,
    "lock": lock.structured,
    "lock_table": lock.table,
    "checkup": checkup.structured,
    "checkup_table": checkup.table,
    "screening": screening.structured,
    "screening_table": screening.table,
    "sim_to_real": sim_to_real.structured,
    "sim_to_real_table": sim_to_real.table,
    "fast_control": fast_control.structured,
    "fast_control_table": fast_control.table,
    "meta_learning": meta_learning.structured,
    "meta_learning_table": meta_learning.table,
    "scheduling": scheduling.structured,
    "scheduling_table": scheduling.table,
    "imitation": imitation.structured,
    "imitation_table": imitation.table,
    "lower_bound_tree": lower_bound.tree,
    "lower_bound_three": lower_bound.three_states,
    "random": random_tables.random_world,
    "maze": maze.structured,
    "hallway": hallway.structured,
    "rocksample": rocksample.structured,
    "diagnosis": diagnosis.structured,
    "delivery": delivery.structured,
    "gaussian_tiger": gaussian_tiger.structured,
    "gaussian_screening": gaussian_screening.structured,
    "low_rank": low_rank.structured,
    "light_dark": light_dark.structured,
    "camera": camera.structured,
}


@checked
def load(name: str, **options: Any) -> World:
    """Load a world of the model zoo by name.

    Parameters
    ----------
    name
        One of ``MODELS``.
    options
        Arguments of the function of the model, such as ``horizon``.

    Examples
    --------
    >>> load("tiger", horizon=6).spaces.horizon
    6
    """
    factory = _factory(name, "models.load")
    has = list(signature(factory).parameters)
    wrong = [option for option in options if option not in has]
    if wrong:
        problems = [unknown("option", "option", option, has, f"{name!r}") for option in wrong]
        raise ParameterError(f"models.load({name!r})", problems)
    return factory(**options)


@checked
def story(name: str) -> str:
    """Describe a model of the model zoo in one sentence.

    Parameters
    ----------
    name
        One of ``MODELS``.

    Examples
    --------
    >>> story("tiger")
    'Tiger: a tiger behind one of two doors growls at every step.'
    """
    factory = _factory(name, "models.story")
    teller = sys.modules[factory.__module__] if factory.__name__ == "structured" else factory
    return " ".join((teller.__doc__ or "").partition("\n\n")[0].split())


def _factory(name: str, asked: str) -> Callable[..., World]:
    if name not in MODELS:
        raise HOMDPError(asked, [unknown("model", "model", name, MODELS, "the model zoo")])
    return MODELS[name]


def __dir__() -> list[str]:
    return __all__
