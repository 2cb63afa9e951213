"""``study.json``: the specification of a study and its inputs, with a checksum.

The file is untrusted data: every part is validated, and a single changed byte is an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import HOMDPError
from homdp_ppl.storage._system import read_plain
from homdp_ppl.storage.atomic import StorageError, storage_errors
from homdp_ppl.study.specification import Study
from homdp_ppl.study.trust import user_files

FORMAT = 2
LARGEST = 2**26  # bytes of study.json, including the texts of user files
AGAIN = "Run the study again, or use the version of homdp_ppl that wrote it."


class Manifest(NamedTuple):
    """The content of ``study.json``."""

    study: Study
    models: Mapping[str, Mapping[str, Any]]  # fingerprints, by model
    rules: Mapping[str, Mapping[str, Any]]  # by rule: uses_prior, coverage
    sources: Mapping[str, str]  # the texts of user files, by model, rule or planner
    about: Mapping[str, str]  # versions of the software, and the machine

    @property
    def identity(self) -> str:
        """A digest of the study and its inputs, which is repeated in the journals of its runs."""
        content = self._content()
        del content["about"]  # the identity does not depend on the machine
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def spaces(self, model: str) -> Spaces | None:
        """The spaces of a finite model; None for models with real-valued spaces."""
        found = self.models[model]
        if found["kind"] != "finite":
            return None
        states, observations, actions = map(tuple, found["spaces"])
        return Spaces(states, observations, actions, found["horizon"])

    def encode(self) -> bytes:
        """The content of ``study.json``."""
        content = self._content()
        return _text({**content, "check": _check(content)})

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read ``study.json``.

        Parameters
        ----------
        file
            The file.

        Raises
        ------
        StorageError
            The file was changed or has another format.
        """
        with storage_errors(file, "a readable study"):
            data = read_plain(file, LARGEST)
        try:
            content = json.loads(data)
            form = content["format"]
            if type(form) is not int:
                raise TypeError("format")
            if form != FORMAT:
                newer = "Use a newer version of homdp_ppl." if form > FORMAT else AGAIN
                raise StorageError(file, f"format {form}", f"format {FORMAT}", newer)
            check = content.pop("check")
            if check != _check(content) or data != _text({**content, "check": check}):
                remedy = "The file was changed: copy it again from the original study."
                raise StorageError(file, "a wrong checksum", "study.json as it was written", remedy)
            return cls._of(content, str(file))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, HOMDPError):
                raise
            got = f"content that is not a study ({type(error).__name__}: {str(error)[:200]})"
            raise StorageError(file, got, "a study") from None

    @classmethod
    def _of(cls, content: Mapping[str, Any], subject: str) -> Manifest:
        study = Study.from_mapping(content["study"], subject)
        models = _mapping(content, "models", study.models, _is_fingerprint)
        rules = _mapping(content, "rules", study.explorers, _is_rule)
        sources = _mapping(content, "sources", user_files(study), _is_text)
        about = _mapping(content, "about", content["about"], _is_text)
        if set(content) != {"format", *cls._fields}:
            raise ValueError("unexpected entries")
        return cls(study, models, rules, sources, about)

    def _content(self) -> dict[str, Any]:
        return {"format": FORMAT, **self._asdict(), "study": self.study.to_json()}


def _text(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode()


def _check(content: Mapping[str, Any]) -> str:
    return sha256(_text(content)).hexdigest()


def _mapping(
    content: Mapping[str, Any], part: str, keys: Any, valid: Callable[[Any], bool]
) -> dict[str, Any]:
    found = content[part]
    if not isinstance(found, dict) or set(found) != set(keys):
        raise ValueError(f"{part} do not match the study")
    wrong = [key for key, value in found.items() if not valid(value)]
    if wrong:
        raise ValueError(f"{part} {wrong[0][:80]!r} has an invalid value")
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_rule(value: Any) -> bool:
    match value:
        case {"uses_prior": bool(), "coverage": None}:
            return len(value) == 2
        case {"uses_prior": bool(), "coverage": float(coverage)}:
            return len(value) == 2 and 0 <= coverage <= 1
    return False


def _is_fingerprint(value: Any) -> bool:
    match value:
        case {
            "kind": "finite" | "continuous" as kind,
            "declaration": str(),
            "spaces": [_, _, _] as spaces,
            "horizon": int(horizon),
            "numbers": str(),
        }:
            finite = kind == "finite"
            lists = [isinstance(space, list) and bool(space) for space in spaces]
            names = [name for space in spaces if isinstance(space, list) for name in space]
            consistent = all(
                is_list or (isinstance(space, str) and not finite)
                for space, is_list in zip(spaces, lists, strict=True)
            )
            return len(value) == 5 and horizon > 0 and consistent and all(map(_is_text, names))
    return False
