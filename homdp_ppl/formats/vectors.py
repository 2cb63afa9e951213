"""Write plans as alpha-vectors for other solvers: pomdp-solve's .alpha and SARSOP's .policy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from homdp_ppl.core.alphas import layers, policy_alphas
from homdp_ppl.core.checked import checked
from homdp_ppl.core.plan import Plan
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.precision import Array
from homdp_ppl.storage.atomic import atomic_write

SUFFIXES = (".alpha", ".policy")


@checked
def write_vectors(plan: Plan, path: str | os.PathLike[str], step: int = 1) -> None:
    """Write the alpha-vectors of a plan, so that other tools can use or check it.

    There is one vector per decision of the policy at the step: its action, and the expected return
    from this step to the end in every state, in the units of the model. The optimum of a belief is
    at least the largest product of the belief with a vector; for an exact plan of ``alpha_vectors``
    it is equal at all reachable beliefs.

    Files that end in ``.alpha`` have the format of pomdp-solve, those that end in ``.policy`` the
    XML of SARSOP. Both tools act before they observe, as models of ``.POMDP`` files do here: their
    first observation says nothing, and step 1 is comparable with the vectors of these tools for the
    same horizon and a discount of 1.

    Parameters
    ----------
    plan
        A plan for a finite model whose policy is deterministic, and whose rewards do not depend on
        the observation.
    path
        The file to write; its suffix selects the format.
    step
        The step, from 1.

    Raises
    ------
    HOMDPError
        If the plan or the file name does not fit; all problems are reported together.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> plan = history_tree()(models.load("tiger", horizon=1).pomdp)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_vectors(plan, Path(folder) / "tiger.alpha")
    ...     print((Path(folder) / "tiger.alpha").read_text().strip())
    0
    0.9 0.9
    """
    place, problems = Path(path), []
    if place.suffix not in SUFFIXES:
        problems.append(Problem("path", repr(place.name), f"a name that ends in {SUFFIXES}"))
    policy, model = plan.finite
    if not 1 <= step <= model.horizon:
        expected = f"an integer from 1 to {model.horizon}"
        problems.append(Problem("step", str(step), expected))
    if model.rewards_by_observation:
        remedy = "The formats have one vector per policy, not one per observation."
        got = "rewards that depend on the observation"
        problems.append(Problem("plan", got, "rewards of states and actions", remedy))
    elif not problems:
        nodes = layers(policy, model.horizon)[step - 1]
        chances = policy.probabilities[nodes]
        if (chances.max(1) < 1).any():
            expected = "one action per node"
            problems.append(Problem("plan", "a policy that draws its actions", expected))
    if problems:
        raise HOMDPError("write_vectors", problems)
    vectors = policy_alphas(policy, model)[step - 1]
    rows = np.unique(np.column_stack([chances.argmax(1), vectors]), axis=0)  # each one once
    text = (_alpha if place.suffix == ".alpha" else _xml)(rows[:, 0].astype(int), rows[:, 1:])
    atomic_write(place, text.encode())


def _numbers(vector: Array) -> str:
    return " ".join(repr(float(value)) for value in vector)  # the shortest exact digits


def _alpha(actions: Array, vectors: Array) -> str:
    pairs = zip(actions, vectors, strict=True)
    return "\n".join(f"{action}\n{_numbers(vector)}\n" for action, vector in pairs)


def _xml(actions: Array, vectors: Array) -> str:
    count, length = vectors.shape
    lines = [
        '<?xml version="1.0" encoding="ISO-8859-1"?>',
        '<Policy version="0.1" type="value" model="model">',
        f'<AlphaVector vectorLength="{length}" numObsValue="1" numVectors="{count}">',
    ]
    lines += [
        f'<Vector action="{action}" obsValue="0">{_numbers(vector)}</Vector>'
        for action, vector in zip(actions, vectors, strict=True)
    ]
    return "\n".join([*lines, "</AlphaVector>", "</Policy>", ""])
