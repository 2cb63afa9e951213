"""Rules of the registry with example arguments, for contract tests."""

from inspect import signature

import numpy as np

from homdp_ppl import World
from homdp_ppl.explorers import EXPLORERS, Explorer


def example_arguments(name: str, world: World) -> dict:
    """Arguments for the parameters of a rule that have no defaults.

    Model classes contain a blurred table, the true table, and one with the states reversed.
    """
    T, O = world.form.short(world.pomdp.transition, world.pomdp.emission)  # noqa: E741
    examples = {
        "world": world,
        "transitions": members(np.asarray(T)),
        "emissions": members(np.asarray(O)),
    }
    parameters = signature(EXPLORERS[name]).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty]
    return {parameter: examples[parameter] for parameter in needed}


def members(truth: np.ndarray) -> np.ndarray:
    """A model class of three tables."""
    support = (truth > 0) / (truth > 0).sum(-1, keepdims=True)
    return np.stack([0.5 * truth + 0.5 * support, truth, truth[::-1]])


def example(name: str, world: World, **options) -> Explorer:
    """A rule of the registry with example arguments."""
    return EXPLORERS[name](**example_arguments(name, world), **options)
