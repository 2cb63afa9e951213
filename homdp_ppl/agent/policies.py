"""Policies as arrays in files that are named by their digest.

A file that was changed or swapped has another digest and is refused. Equal policies share a file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.continuous.quantised_policy import QuantisedPolicy, cell_names
from homdp_ppl.continuous.tabulation import as_edges
from homdp_ppl.core.blind_policy import BlindPolicy
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.declare.fingerprint import fingerprint
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.precision import Array
from homdp_ppl.storage.atomic import StorageError, storage_errors
from homdp_ppl.storage.npz import read_arrays, write_arrays

FORMAT = "homdp_ppl agent policy 1"
GRAPH, CELLS, BLIND = range(3)  # kinds of policies
PARTS = ("kind", "start", "probabilities", "successor", "edges", "allowed")
NOTHING = np.zeros(0)


class Kept(NamedTuple):
    """A policy and the actions that are allowed at each of its nodes; None: all of them."""

    policy: Policy
    allowed: Array | None = None


def to_arrays(policy: Policy, allowed: Array | None = None) -> dict[str, Array] | None:
    """The arrays of a policy; None if it is not made of arrays."""
    graph = policy.graph if isinstance(policy, QuantisedPolicy) else policy
    parts: dict[str, Any] = dict.fromkeys(PARTS, NOTHING)
    if isinstance(graph, GraphPolicy):
        parts |= {
            "kind": np.array([CELLS if isinstance(policy, QuantisedPolicy) else GRAPH]),
            "start": graph.start,
            "probabilities": graph.probabilities,
            "successor": graph.successor,
        }
    elif isinstance(policy, BlindPolicy):
        parts |= {"kind": np.array([BLIND]), "probabilities": policy.table}
    else:
        return None
    if isinstance(policy, QuantisedPolicy):
        parts["edges"] = policy.edges
    if allowed is not None:
        parts["allowed"] = allowed
    return {name: np.ascontiguousarray(part) for name, part in parts.items()}


def from_arrays(parts: dict[str, Array], spaces: Spaces) -> Kept:
    """The policy of arrays, which are validated; raises PolicyError."""
    start, chances, successor = (parts[name] for name in ("start", "probabilities", "successor"))
    allowed = parts["allowed"] if parts["allowed"].size else None
    found, A = chances.shape, len(spaces.actions)
    if found[1:] != (A,):
        problem = Problem("probabilities", f"shape {found}", f"shape (N, {A})")
        raise PolicyError("policy of an agent", [problem])
    if allowed is not None and allowed.shape != found:
        problem = Problem("allowed", f"shape {allowed.shape}", f"shape {found}")
        raise PolicyError("policy of an agent", [problem])
    if int(parts["kind"][0]) == BLIND:
        return Kept(BlindPolicy(chances))
    if int(parts["kind"][0]) == CELLS:
        edges = as_edges(parts["edges"])
        graph = GraphPolicy(start, chances, successor, (cell_names(edges), spaces.actions))
        return Kept(QuantisedPolicy(edges, graph), allowed)
    names = names_of(spaces.observations), spaces.actions
    return Kept(GraphPolicy(start, chances, successor, names), allowed)


def digest_of(parts: dict[str, Array]) -> str:
    """The digest of the arrays of a policy."""
    return fingerprint(*(part for name in PARTS for part in (name, parts[name])))


class Shelf:
    """Policies by digest, in memory and, with a directory, in files.

    Parameters
    ----------
    spaces
        The spaces of the policies.
    directory
        Where to keep files; None for memory only.
    """

    def __init__(self, spaces: Spaces, directory: Path | None) -> None:
        self._spaces, self._directory = spaces, directory
        self._kept: dict[str, Kept] = {}

    def add(self, policy: Policy, allowed: Array | None) -> str | None:
        """Keep a policy; returns its digest, or None if it is not made of arrays."""
        parts = to_arrays(policy, allowed)
        if parts is None:
            return None
        digest = digest_of(parts)
        if self._directory is not None:
            path = self._path(digest)
            if not path.exists():
                with storage_errors(path.parent, "a directory that can be created"):
                    path.parent.mkdir(exist_ok=True)
                write_arrays(path, FORMAT, **parts)
        # the policy as it will be read later, so that every process acts alike
        self._kept.setdefault(digest, from_arrays(parts, self._spaces))
        return digest

    def get(self, digest: str) -> Kept:
        """The policy with this digest; raises an error for a missing or another file."""
        if digest not in self._kept:
            self._kept[digest] = self._read(digest)
        return self._kept[digest]

    def keep_only(self, digests: set[str]) -> None:
        """Remove other policies from memory, if they are in files."""
        if self._directory is not None:
            for digest in set(self._kept) - digests:
                del self._kept[digest]

    def _path(self, digest: str) -> Path:
        assert self._directory is not None
        folder = self._directory / "policies"
        if os.path.islink(folder):
            raise StorageError(folder, "a symbolic link", "a directory")
        return folder / f"{digest}.npz"

    def _read(self, digest: str) -> Kept:
        path = self._path(digest)
        if os.path.islink(path) or (path.exists() and not path.is_file()):
            raise StorageError(path, "not a regular file", "the file of a policy")
        parts = read_arrays(path, FORMAT, PARTS)
        if (
            parts["kind"].shape != (1,)
            or parts["kind"].dtype.kind != "i"
            or digest != digest_of({name: parts[name] for name in PARTS})
        ):
            remedy = "The file was changed. Restore it from a backup."
            raise StorageError(path, "another policy", "the policy that was saved", remedy)
        return from_arrays(parts, self._spaces)
