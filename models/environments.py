"""The model zoo as Gymnasium environments: ``gymnasium.make("homdp/Tiger-v0", horizon=6)``.

There is one id per model. Gymnasium 1.0 and later do not load entry points, so ids are registered
when ``homdp_ppl.gym`` is imported, for instance by
``gymnasium.make("homdp_ppl.gym:homdp/Tiger-v0")``. The entry point "homdp" is for older versions
and for tools that load it. For asynchronous vector environments pass
``vector_kwargs={"context": "spawn"}``, because JAX warns when its process is forked.
"""

from functools import lru_cache
from typing import Any

import gymnasium

from homdp_ppl.declare.model import World
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.models import MODELS, load


class ZooEnv(HOMDPEnv):
    """A world of the model zoo by name; the class of the registered environments.

    Parameters
    ----------
    name
        One of ``MODELS``; set by the id.
    per_step, render_mode
        As in :class:`homdp_ppl.gym.HOMDPEnv`.
    options
        Arguments of the function of the model, such as ``horizon``.
    """

    def __init__(
        self, name: str, per_step: bool = False, render_mode: str | None = None, **options: Any
    ) -> None:
        try:
            world = _remembered(name, **options)
        except TypeError:  # an option that is not hashable, such as an array
            world = load(name, **options)
        super().__init__(world, per_step, render_mode)


@lru_cache(maxsize=32, typed=True)
def _remembered(name: str, **options: Any) -> World:
    """Cached, because declaring takes seconds and ``gymnasium.make_vec`` loads many copies."""
    return load(name, **options)


def environment_id(name: str) -> str:
    """The Gymnasium id of a model.

    Examples
    --------
    >>> environment_id("tiger_table")
    'homdp/TigerTable-v0'
    """
    return f"homdp/{''.join(word.capitalize() for word in name.split('_'))}-v0"


def register() -> None:
    """Register an id for each model; repeated calls have no effect."""
    for name in MODELS:
        if environment_id(name) not in gymnasium.registry:
            gymnasium.register(
                environment_id(name),
                entry_point="homdp_ppl.models.environments:ZooEnv",
                kwargs={"name": name},
            )


register()
