"""Which user files a study may import: those that the user has named or agreed to.

A study directory may come from somebody else, so the files that its ``study.json`` names are
neither imported nor read without the user's consent.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeAlias

from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.study.files import file_of
from homdp_ppl.study.specification import Study

Trust: TypeAlias = bool | str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def user_files(study: Study) -> dict[str, Path]:
    """The models, rules and planners of a study that are in files, each with its file.

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


def trusted_texts(study: Study, trust: Trust) -> frozenset[str]:
    """The models, rules and planners whose files the user agrees to import.

    Parameters
    ----------
    study
        What the directory asks for.
    trust
        True for all files at or below the working directory; or the files themselves, anywhere.

    Raises
    ------
    ParameterError
        A file that the study does not name, or one that ``trust=True`` does not cover. Nothing was
        read.
    """
    files = user_files(study)
    if trust is False:
        return frozenset()
    if trust is True:
        problems = [
            Problem(text, str(file), "a file at or below the working directory", _name_it(file))
            for text, file in files.items()
            if not _is_below(file)
        ]
        found = frozenset(files)
    else:
        try:
            named = [Path(trust)] if isinstance(trust, str | os.PathLike) else [*map(Path, trust)]
        except TypeError:
            expected = "True, False, or the files that may be imported"
            raise ParameterError("resume", [Problem("trust", repr(trust), expected)]) from None
        known = {file.resolve() for file in files.values()}
        problems = [
            Problem("file", str(file), f"a file that the study names: {_listed(files.values())}")
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
        raise ParameterError("resume", problems)
    return found


def check_trusted(texts: Iterable[str], trusted: Collection[str], subject: str) -> None:
    """Raise ParameterError for models, rules and planners in files that were not agreed to.

    Parameters
    ----------
    texts
        What is about to be imported.
    trusted
        What the user agreed to.
    subject
        What the error is about.
    """
    files = {text: file for text in texts if (file := file_of(text)) is not None}
    refused = {text: file for text, file in files.items() if text not in trusted}
    if refused:
        remedy = (
            "Resuming imports these files. If you trust the study, resume with --trust (in Python: "
            f"trust=True), or name them: homdp resume DIR {_listed(refused.values())}."
        )
        problems = [
            Problem(text, f"the user file {file}", "your consent to import it")
            for text, file in refused.items()
        ]
        problems[-1] = problems[-1]._replace(remedy=remedy)
        raise ParameterError(subject, problems)


def _is_below(file: Path) -> bool:
    """Whether a path stays inside the working directory, links included."""
    return (
        not file.is_absolute()
        and ".." not in file.parts
        and file.resolve().is_relative_to(Path.cwd().resolve())
    )


def _name_it(file: Path) -> str:
    return f"If you trust it, name it: homdp resume DIR {shlex.quote(str(file))}."


def _listed(files: Iterable[Path]) -> str:
    return " ".join(shlex.quote(str(file)) for file in dict.fromkeys(files))
