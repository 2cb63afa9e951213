"""Valid calls of studies."""

from __future__ import annotations

from collections.abc import Iterator

from homdp_ppl import explorers, planners, study
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record


def studies() -> Iterator[Recipe]:
    """Studies."""
    tiger, runs, done = things.tiger(), things.runs(), things.finished()
    asked, unit = done.directory.study, next(iter(done.directory.units()))
    small = {
        "models": "tiger",
        "explorers": ["greedy"],
        "episodes": 3,
        "seeds": 1,
        "workers": 1,
        "horizon": 2,
    }
    yield recipe(
        "study.compare",
        study.compare,
        **small,
        out=things.folder() / "study",
        priors=["declared"],
        time_limit=60.0,
        patient="episodes seeds",
    )
    yield recipe(
        "study.resume", study.resume, out=things.folder() / "study", workers=1, time_limit=60.0
    )
    yield from reading("study.Finished", done, "complete")
    fields = {name: getattr(asked, name) for name in asked.__dataclass_fields__}
    yield recipe("study.Study", study.Study, **fields)
    yield recipe("study.Study.bayesian", asked.bayesian)
    yield recipe(
        "study.Study.from_mapping",
        study.Study.from_mapping,
        given={"models": ["tiger"], "episodes": 3},
        subject="study",
        free="subject",
    )
    toml = things.folder() / "study.toml"
    toml.write_text('models = ["tiger"]\nepisodes = 3\n')
    yield recipe("study.Study.from_toml", study.Study.from_toml, path=toml)
    yield recipe("study.Study.to_json", asked.to_json)
    yield recipe(
        "study.Study.units",
        lambda **given: list(asked.units(**given)),
        continuous=["tiger"],
        bayesian=["greedy"],
    )
    place = done.directory
    (things.folder() / "new").mkdir(exist_ok=True)
    yield recipe(
        "study.StudyDirectory.at_place",
        study.StudyDirectory.at_place,
        path=place.path,
        study=asked,
        free="path",
    )
    yield recipe(
        "study.StudyDirectory.check_imports", lambda text: place.check_imports(text), text="tiger"
    )
    yield recipe("study.StudyDirectory.confirm", place.confirm)
    yield recipe("study.StudyDirectory.identity", place.identity, unit=unit, seed=0)
    yield recipe("study.StudyDirectory.make_unit_path", place.make_unit_path, unit=unit)
    yield recipe("study.StudyDirectory.world", place.world, text="tiger")
    yield recipe(
        "study.StudyDirectory.create",
        study.StudyDirectory.create,
        path=things.folder() / "new",
        study=asked,
        worlds={"tiger": tiger},
    )
    yield recipe("study.StudyDirectory.journal_path", place.journal_path, unit=unit, seed=0)
    yield recipe("study.StudyDirectory.journals", lambda: list(place.journals()))
    yield recipe("study.StudyDirectory.open", study.StudyDirectory.open, path=place.path)
    yield recipe("study.StudyDirectory.unit_path", place.unit_path, unit=unit)
    yield recipe("study.StudyDirectory.units", lambda: list(place.units()))
    yield from reading("study.StudyDirectory", place, "flag", "about", "study")
    yield record("study.Unit", study.Unit, **unit._asdict())
    yield from reading("study.Unit", unit, "name")
    yield recipe("study.digest", study.digest, directory=place)
    yield recipe("study.read_runs", study.read_runs, directory=place)
    yield recipe(
        "study.episodes_to", study.episodes_to, run=things.run(), epsilon=0.1, free="epsilon"
    )
    yield recipe("study.find_planner", study.find_planner, text="auto", world=tiger, model=None)
    yield recipe("study.find_rule", study.find_rule, text="tight", world=tiger)
    yield recipe("study.find_world", study.find_world, text="tiger", horizon=2, seed=0)
    yield recipe(
        "study.paired_difference",
        study.paired_difference,
        runs=runs["uniform"],
        others=runs["oracle"],
        free="runs others",
    )
    yield from reading("study.Row", study.summarise(runs)[0], "guaranteed")
    yield recipe("study.pairwise_differences", study.pairwise_differences, runs=runs)
    yield recipe(
        "study.side_by_side",
        study.side_by_side,
        world=tiger,
        rules=[explorers.uniform(), explorers.greedy()],
        planner=planners.history_tree(),
        episodes=2,
        seeds=[0],
        patient="episodes",
    )
    yield recipe("study.summarise", study.summarise, runs=runs, epsilon=0.1)
