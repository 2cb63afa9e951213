"""The zoo as Gymnasium environments.

``gymnasium.make("homdp/Tiger-v0", horizon=6)``, one id for each entry.

Since version 1.0 Gymnasium loads no entry points: ids are registered when ``homdp_ppl.gym`` is
imported, for instance by ``gymnasium.make("homdp_ppl.gym:homdp/Tiger-v0")``. The entry point
"homdp" is for older versions and for tools that load it. Spawn asynchronous vectors,
``vector_kwargs={"context": "spawn"}``: JAX warns when its process is forked.
"""

from functools import lru_cache
from typing import Any

import gymnasium

from homdp_ppl.declare.model import World
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.models import MODELS, load


class ZooEnv(HOMDPEnv):
    """A world of the zoo by its name; what the registered ids make.

    Parameters
    ----------
    name
        One of ``MODELS``; the id gives it.
    per_step, render_mode
        As in :class:`homdp_ppl.gym.HOMDPEnv`.
    options
        Arguments of the model's own function, such as ``horizon``.
    """

    def __init__(
        self, name: str, per_step: bool = False, render_mode: str | None = None, **options: Any
    ) -> None:
        try:
            world = _remembered(name, **options)
        except TypeError:  # an option that can be no key, an array say
            world = load(name, **options)
        super().__init__(world, per_step, render_mode)


@lru_cache(maxsize=32, typed=True)
def _remembered(name: str, **options: Any) -> World:
    """Worlds take seconds to declare, and ``gymnasium.make_vec`` asks for many of the same."""
    return load(name, **options)


def environment_id(name: str) -> str:
    """The id of a zoo entry.

    Examples
    --------
    >>> environment_id("tiger_table")
    'homdp/TigerTable-v0'
    """
    return f"homdp/{''.join(word.capitalize() for word in name.split('_'))}-v0"


def register() -> None:
    """Register an id for each entry of the zoo; again does nothing."""
    for name in MODELS:
        if environment_id(name) not in gymnasium.registry:
            gymnasium.register(
                environment_id(name),
                entry_point="homdp_ppl.models.environments:ZooEnv",
                kwargs={"name": name},
            )


register()
