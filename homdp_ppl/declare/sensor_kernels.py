"""The emission kernels of single sensors.

An emission of several sensors is a function that returns a dict of distributions, or a dict of
arrays and functions. Given the state (and the previous action and the step), sensors are
independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.declare.distributions import call_kernel, is_function
from homdp_ppl.declare.signatures import KernelError
from homdp_ppl.errors import Problem, unknown, with_article

PER_SENSOR = "a dict with one distribution, array or function per sensor"


def of_sensor(where: str, kernel: Any, sensor: str, optional: bool = False) -> Any:
    """The kernel of one sensor, an array or a function; None if it is optional and absent.

    Raises :class:`KernelError` if the sensor is missing, or if there is no dict.

    Parameters
    ----------
    where
        The kernel: "emission" or "first_emission".
    kernel
        A dict, or a function that returns dicts.
    sensor
        The name of the sensor.
    optional
        Whether a dict may lack the sensor.
    """
    if kernel is None or (optional and isinstance(kernel, Mapping) and sensor not in kernel):
        return None
    if isinstance(kernel, Mapping):
        return _part(where, kernel, sensor)
    if is_function(kernel):
        return _picked(where, kernel, sensor)
    raise _no_dict(where, kernel)


def _picked(where: str, kernel: Callable[..., Any], sensor: str) -> Callable[..., Any]:
    """A function with the same arguments that returns the distribution of one sensor."""

    @wraps(kernel)
    def picked(*args: Any, **given: Any) -> Any:
        result = kernel(*args, **given)
        if not isinstance(result, Mapping):
            raise _no_dict(where, result)
        return _part(where, result, sensor)

    return picked


def _part(where: str, kernels: Mapping[str, Any], sensor: str) -> Any:
    if sensor not in kernels:
        got = f"no sensor {sensor!r} among {', '.join(map(str, kernels)) or 'no sensors'}"
        remedy = f"Add {sensor!r} to the dict, or remove it from observations."
        raise KernelError(Problem(f"{where}[{sensor}]", got, "every declared sensor", remedy))
    return kernels[sensor]


def _no_dict(where: str, given: Any) -> KernelError:
    remedy = "Return {sensor: distribution, ...}, with the sensors of observations."
    name = (
        "an array"
        if isinstance(given, jax.Array | np.ndarray)
        else with_article(type(given).__name__)
    )
    got = f"{name} without sensors"
    return KernelError(Problem(where, got, PER_SENSOR, remedy))


def check_sensors(where: str, kernel: Any, sensors: Mapping[str, Any]) -> None:
    """Raise :class:`KernelError` for names in a dict of kernels that are no declared sensors."""
    if is_function(kernel):
        kernel = call_kernel(
            where, kernel, {"x": jnp.array(0), "a": jnp.array(0), "h": jnp.array(1)}
        )
    for name in kernel if isinstance(kernel, Mapping) else ():
        if name not in sensors:
            raise KernelError(unknown(where, "sensor", str(name), sensors, "observations"))


def refuse_dict(where: str, result: Any) -> None:
    """Raise :class:`KernelError` for a dict if observations have no sensors."""
    if isinstance(result, Mapping):
        got = f"a dict of the sensors {', '.join(map(str, result))}"
        remedy = "Declare the sensors: observations={sensor: names or their number, ...}."
        raise KernelError(Problem(where, got, "one distribution of all observations", remedy))
