"""Trust: a study imports only user files that the user has named or agreed to.

A study directory may come from another user. So the files that its ``study.json`` names are neither
read nor imported without consent.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.study.files import file_of
from homdp_ppl.study.specification import Study

Trust: TypeAlias = bool | str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def user_files(study: Study) -> dict[str, Path]:
    """The models, rules and planners of a study that are in user files, with their files.

    Parameters
    ----------
    study
        The study.

    Examples
    --------
    >>> user_files(Study(("tiger", "mine.py:world"), ("greedy", "mine.py:rule")))
    {'mine.py:world': PosixPath('mine.py'), 'mine.py:rule': PosixPath('mine.py')}
    """
    texts = dict.fromkeys((*study.models, *study.explorers, study.planner))
    return {text: file for text in texts if (file := file_of(text)) is not None}


class Asking(NamedTuple):
    """Who asks for consent, for errors."""

    subject: str  # of the error
    owner: str  # what names the files: "the study"
    command: str  # a command in which files are listed


RESUMING = Asking("resume", "the study", "homdp resume DIR")


def trusted_texts(study: Study, trust: Trust) -> frozenset[str]:
    """The models, rules and planners of a study whose user files may be imported.

    See :func:`trusted_files`.
    """
    return trusted_files(user_files(study), trust, RESUMING)


def trusted_files(files: Mapping[str, Path], trust: Trust, asking: Asking) -> frozenset[str]:
    """The texts whose user files may be imported.

    Parameters
    ----------
    files
        The user files by the text that names them.
    trust
        True for all files in or below the working directory, or the files, at any place.
    asking
        Who asks.

    Raises
    ------
    ParameterError
        A file is not one of these, or is not covered by ``trust=True``. Nothing was read.
    """
    if trust is False:
        return frozenset()
    if trust is True:
        problems = [
            Problem(
                text,
                str(file),
                "a file in or below the working directory",
                _consent_to(file, asking),
            )
            for text, file in files.items()
            if not _is_below(file)
        ]
        found = frozenset(files)
    else:
        try:
            named = [Path(trust)] if isinstance(trust, str | os.PathLike) else [*map(Path, trust)]
        except TypeError:
            expected = "True, False, or the files that may be imported"
            raise ParameterError(
                asking.subject, [Problem("trust", repr(trust), expected)]
            ) from None
        known = {file.resolve() for file in files.values()}
        problems = [
            Problem("file", str(file), f"a user file of {asking.owner}: {_listed(files.values())}")
            for file in named
            if file.resolve() not in known
        ]
        agreed = {file.resolve() for file in named}
        found = frozenset(text for text, file in files.items() if file.resolve() in agreed)
    problems += [
        Problem(text, str(files[text]), "a .py or .POMDP file")
        for text in sorted(found)
        if files[text].suffix.lower() not in (".py", ".pomdp")
    ]
    if problems:
        raise ParameterError(asking.subject, problems)
    return found


def check_trusted(texts: Iterable[str], trusted: Collection[str], subject: str) -> None:
    """Raise ParameterError for models, rules and planners in files that are not trusted.

    Parameters
    ----------
    texts
        The models, rules and planners to import.
    trusted
        Those that the user agreed to import.
    subject
        The subject of the error.
    """
    files = {text: file for text in texts if (file := file_of(text)) is not None}
    refused = {text: file for text, file in files.items() if text not in trusted}
    if refused:
        remedy = (
            "Resuming imports the user files of the study. If you trust them, use --trust (in "
            f"Python: trust=True), or list them: homdp resume DIR {_listed(refused.values())}."
        )
        problems = [
            Problem(text, f"the user file {file}", "your consent to import it")
            for text, file in refused.items()
        ]
        problems[-1] = problems[-1]._replace(remedy=remedy)
        raise ParameterError(subject, problems)


def _is_below(file: Path) -> bool:
    """Whether a path is inside the working directory, with links resolved."""
    return (
        not file.is_absolute()
        and ".." not in file.parts
        and file.resolve().is_relative_to(Path.cwd().resolve())
    )


def _consent_to(file: Path, asking: Asking) -> str:
    return f"If you trust this file, list it: {asking.command} {shlex.quote(str(file))}."


def _listed(files: Iterable[Path]) -> str:
    return " ".join(shlex.quote(str(file)) for file in dict.fromkeys(files))
