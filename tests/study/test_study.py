"""Studies: specification, directory, results and summaries."""

import json
import resource

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t as student

from homdp_ppl import HOMDPError, ParameterError, learn, study
from homdp_ppl.planners import history_tree
from homdp_ppl.report.studies import draw_optimism
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.study import Study, StudyDirectory, find_planner, find_rule, find_world
from homdp_ppl.study.learners import learner
from homdp_ppl.study.reading import read_run
from homdp_ppl.study.sources import find_again, parse_call
from homdp_ppl.study.units import begin
from tests.raising import raises

ASKED = {
    "explorers": ["greedy", "posterior_sampling"],
    "episodes": 12,
    "seeds": 3,
    "priors": ("declared", "flat"),
    "epsilon": 0.2,
}
MODEL = """
import numpyro, numpyro.distributions as dist
from homdp_ppl import Kernels, homdp

@homdp(states=2, observations=2, actions=2, horizon=2, reward=[[0.0, 0.2], [1.0, 0.5]])
def mine():
    p = numpyro.sample("p", dist.Beta(1, 1))
    return Kernels([1.0, 0.0], lambda x, a: dist.Bernoulli(p), lambda x: dist.Delta(x))

fixed = mine.at(p=0.25)
"""


ENDING = """
import jax.numpy as jnp, numpyro, numpyro.distributions as dist
from homdp_ppl import Kernels, homdp

@homdp(states=("on", "off"), observations=2, actions=2, horizon=3, terminal=("off",),
       reward=[[1.0, 0.3], [0.0, 0.0]])
def lamp():
    p = numpyro.sample("p", dist.Beta(2, 2))
    on = jnp.array([[1 - p, p], [1.0, 0.0]])
    return Kernels([1.0, 0.0], jnp.stack([on, on]), [[0.5, 0.5], [0.5, 0.5]])

fixed = lamp.at(p=0.5)
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study.compare(
        "tiger:horizon=2", **ASKED, out=tmp_path_factory.mktemp("study") / "here", workers=1
    )


def test_runs_equal_those_of_learn(done):
    """For each seed and each prior."""
    assert done.complete
    world = find_world("tiger:horizon=2")
    for (_, prior, rule), runs in done.runs.items():
        for seed, run in enumerate(runs):
            model = learner(world, prior)
            expected = learn(
                world, find_rule(rule, world), history_tree(), 12, seed, model, compiled=False
            )
            np.testing.assert_array_equal(run.values, expected.values)
            np.testing.assert_array_equal(run.record.states, expected.record.states)
            assert run.optimum == expected.optimum
    assert list(done.runs) == [
        ("tiger:horizon=2", "declared", "greedy"),
        ("tiger:horizon=2", "declared", "posterior_sampling"),
        ("tiger:horizon=2", "flat", "posterior_sampling"),
    ]


@pytest.mark.slow
def test_episodes_that_end_early(tmp_path, monkeypatch):
    """A study of a model with terminal states stores the run of learn, and can be resumed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ending.py").write_text(ENDING)
    source = "ending.py:fixed"
    asked = {"priors": ("declared",), "workers": 1, "out": tmp_path / "study"}
    made = study.compare(source, ["greedy"], episodes=8, seeds=1, **asked)
    (run,) = made.runs[source, "declared", "greedy"]
    world = find_world(source)
    rule = find_rule("greedy", world)
    expected = learn(world, rule, find_planner("auto", world), 8, compiled=False)
    ends = world.spaces.ends[expected.record.states]
    assert ends[:, :-1].any()
    assert (ends[:, 1:] >= ends[:, :-1]).all()
    np.testing.assert_array_equal(run.record.states, expected.record.states)
    np.testing.assert_allclose(run.values, expected.values, rtol=0, atol=1e-9)
    assert study.resume(made.directory.path, trust=True).complete


def test_results_have_labelled_axes(done):
    with xr.open_dataset(done.directory.path / "results.nc", engine="scipy") as data:
        runs = done.runs["tiger:horizon=2", "flat", "posterior_sampling"]
        chosen = data.sel(model="tiger:horizon=2", prior="flat", rule="posterior_sampling")
        np.testing.assert_array_equal(chosen.regret, [run.regret for run in runs])
        np.testing.assert_array_equal(chosen.was_optimistic, [run.was_optimistic for run in runs])
        assert np.isnan(data.value.sel(prior="flat", rule="greedy")).all()  # greedy has no prior
        assert data.attrs["digest"] == study.digest(done.directory)
        assert data.sizes == {"model": 1, "prior": 2, "rule": 2, "seed": 3, "round": 12}


def test_a_complete_study_is_not_run_again(done):
    before = {path: path.stat().st_mtime_ns for path in done.directory.path.rglob("*.journal")}
    again = study.compare("tiger:horizon=2", **ASKED, out=done.directory.path, workers=1)
    assert again.complete
    assert {
        path: path.stat().st_mtime_ns for path in done.directory.path.rglob("*.journal")
    } == before


def test_lists_and_tuples_are_the_same_study(done):
    assert Study(["tiger"], ["greedy"], priors=["declared"]) == Study(
        ("tiger",), ("greedy",), priors=("declared",)
    )
    again = study.compare(
        ["tiger:horizon=2"],
        **{**ASKED, "priors": ["declared", "flat"]},
        out=done.directory.path,
        workers=1,
    )
    assert again.complete


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"models": Study(("tiger",)), "episodes": 3}, "episodes"),
        ({"models": Study(("tiger",)), "horizon": 2}, "horizon"),
        ({"models": "tiger", "horizn": 2}, "key"),
        ({"models": "tiger", "workers": 0}, "workers"),
        ({"models": "tiger", "workers": 1.5}, "workers"),
        ({"models": "tiger", "time_limit": -1.0}, "time_limit"),
        ({"models": "tiger", "time_limit": "soon"}, "time_limit"),
        ({"models": "tiger", "report": 7}, "report"),
        ({"models": find_world("tiger:horizon=2")}, "models"),
        ({"models": [find_world("tiger:horizon=2")]}, "models"),
        ({"models": None}, "models"),
        ({"models": "tiger", "seeds": 10**6}, "seeds"),
        ({"models": "tiger", "seeds": 10**5000}, "seeds"),
        (
            {"models": "tiger", "seeds": 1000, "episodes": 10**7},
            "episodes",
        ),
        ({"models": "x" * 10**6}, "models"),
        (
            {"models": "tiger", "explorers": "greedy"},
            "explorers",
        ),
    ],
)
def test_invalid_arguments_are_errors(tmp_path, given, where):
    with raises(ParameterError, where):
        study.compare(**{"out": tmp_path / "study", "workers": 1, **given})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("out", [None, 7, ""])
def test_an_output_directory_that_is_not_a_path(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ask in (lambda: study.compare("tiger", out=out), lambda: study.resume(out)):
        with pytest.raises(ParameterError) as caught:
            ask()
        assert caught.value.problems[0].where == "out"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        'models = ["tiger"]\nseeds = 1000000\n',
        f'models = ["tiger"]\nepisodes = {"9" * 5000}\n',
        f'models = ["tiger"]\n{"k" * 40_000} = 1\n',
        f'models = ["tiger"]\nplanner = "{"k" * 40_000}"\n',
        f'models = ["{"k" * 40_000}"]\n',
        f'models = ["tiger"]\npriors = ["declared", "{"k" * 40_000}"]\n',
        f'models = ["tiger"]\n# {"k" * 2**20}\n',
        "a" + ".a" * 20_000 + " = 1\n",
        "models = {a" + " . a" * 10_000 + " = 1}\n",
        "[a" + ".'a'" * 10_000 + "]\n",
        'models = ["tiger"]\nexplorers = ["' + "a." * 200 + '"]\n',
    ],
)
def test_small_files_with_large_demands(tmp_path, content):
    """A short error, without much memory."""
    file = tmp_path / "study.toml"
    file.write_text(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ParameterError) as caught:
        Study.from_toml(file)
    assert len(str(caught.value)) < 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


@pytest.mark.parametrize("digits", [400, 5000])
def test_options_with_many_digits(digits):
    for text in (f"hop_b:scale={'9' * digits}", f"greedy:{'k' * digits}=1"):
        with pytest.raises(HOMDPError) as caught:
            find_rule(text, find_world("tiger:horizon=2"))
        assert len(str(caught.value)) < 20_000


def test_a_file_instead_of_a_directory(tmp_path):
    (tmp_path / "file").touch()
    with raises(StorageError, f"{tmp_path}/file"):
        study.compare("tiger:horizon=2", out=tmp_path / "file", workers=1)


def test_continuous_models_have_the_declared_prior_only():
    asked = Study(("tiger", "line"), ("posterior_sampling",), seeds=1, priors=("declared", "flat"))
    names = [unit.name for unit in asked.units(continuous=["line"])]
    assert names == [
        "posterior_sampling in tiger, seed 0",
        "posterior_sampling in tiger, flat prior, seed 0",
        "posterior_sampling in line, seed 0",
    ]


def test_summaries_need_runs_by_rule(done):
    (runs, *_) = done.runs.values()
    for wrong, where in (
        (runs, "runs"),
        ({"greedy": []}, "greedy"),
        ({"greedy": runs[0]}, "runs"),
    ):
        with raises(HOMDPError, where):
            study.summarise(wrong)
    assert study.summarise({}) == []


def test_another_study_in_the_same_directory_is_an_error(done):
    with raises(ParameterError, "directory"):
        study.compare(
            "tiger:horizon=2", **{**ASKED, "episodes": 13}, out=done.directory.path, workers=1
        )


def test_a_directory_with_other_files_is_an_error(tmp_path):
    (tmp_path / "thesis.txt").write_text("finished")
    with raises(ParameterError, "directory"):
        study.compare("tiger:horizon=2", **ASKED, out=tmp_path, workers=1)


def test_a_changed_model_is_an_error_that_shows_the_difference(tmp_path):
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    asked = {
        "explorers": ["greedy"],
        "episodes": 4,
        "seeds": 1,
        "out": tmp_path / "study",
        "workers": 1,
    }
    study.compare(f"{file}:fixed", **asked)
    file.write_text(MODEL.replace("p=0.25", "p=0.5"))
    change = "is 'fixed = mine.at(p=0.5)', before 'fixed = mine.at(p=0.25)'"
    with raises(ParameterError, f"{tmp_path}/model.py:fixed") as caught:
        study.resume(tmp_path / "study", workers=1, trust=[file])
    assert change in str(caught.value)
    file.write_text(MODEL)
    assert study.resume(tmp_path / "study", workers=1, trust=[file]).complete


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "a study"),
        ("[]", "a study"),
        ('{"format": 3}', "format 2"),
        ('{"format": 1}', "format 2"),
        ('{"format": 2}', "a study"),
        ('{"format": 2, "study": {"models": []}, "check": ""}', "study.json as it was written"),
    ],
)
def test_directories_without_a_study(tmp_path, content, expected):
    with raises(ParameterError, "directory"):
        StudyDirectory.open(tmp_path)
    file = tmp_path / "study.json"
    file.write_text(content)
    with raises(StorageError, str(file)) as caught:
        StudyDirectory.open(tmp_path)
    assert [problem.expected for problem in caught.value.problems] == [expected]


def test_a_study_as_toml(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        'models = ["tiger", "lock"]\nexplorers = ["hop_b:scale=0.1"]\nepisodes = 7\npriors '
        '= ["declared"]\n'
    )
    assert Study.from_toml(file) == Study(
        ("tiger", "lock"), ("hop_b:scale=0.1",), 7, priors=("declared",)
    )
    for content, problems in (
        ('model = ["tiger"]', {"key": "unknown key 'model'", "models": "nothing"}),
        ('models = "tiger"', {"models": "'tiger'"}),
        ('models = ["a"]\nepisodes = 0', {"episodes": "0"}),
        ('models = ["a"]\nepisodes = true', {"episodes": "True"}),
        ('models = ["a"]\npriors = ["flat"]', {"priors": "flat"}),
        ('models = ["a"]\npriors = ["declared", "falt"]', {"priors": "unknown prior 'falt'"}),
        ('models = ["a", "a"]', {"models": "'a, a'"}),
    ):
        file.write_text(content)
        with pytest.raises(ParameterError) as caught:
            Study.from_toml(file)
        assert {problem.where: problem.got for problem in caught.value.problems} == problems
    file.write_text("models = [")
    with raises(ParameterError, "file"):
        Study.from_toml(file)
    assert Study.from_mapping(json.loads(json.dumps(Study(("tiger",)).to_json()))) == Study(
        ("tiger",)
    )


def test_names_and_options():
    world = find_world("tiger:horizon=2,accuracy=0.7")
    assert world.spaces.horizon == 2
    assert float(world.parameters["accuracy"]) == 0.7
    assert find_rule("quantile_backup:z=2.0", world).name == "quantile_backup(z=2.0)"
    assert parse_call("a:b=x,c=true", "it") == ("a", {"b": "x", "c": True})
    for ask, where, got in (
        (lambda: find_world("tigre"), "name", "unknown model 'tigre'"),
        (lambda: find_world("tiger:horizn=2"), "option", "unknown option 'horizn'"),
        (lambda: find_rule("gredy", world), "name", "unknown exploration rule 'gredy'"),
        (lambda: find_rule("greedy:z=1", world), "option", "unknown option 'z'"),
        (lambda: find_rule("hop_v", world), "name", "'hop_v'"),
        (lambda: find_rule("hop_b:scale", world), "hop_b", "'scale'"),
        (lambda: find_planner("histry_tree", world), "name", "unknown planner 'histry_tree'"),
    ):
        with pytest.raises(HOMDPError) as caught:
            ask()
        assert [(problem.where, problem.got) for problem in caught.value.problems] == [(where, got)]


def test_blocks_of_seeds_do_not_change_the_results(done, tmp_path):
    again = study.compare("tiger:horizon=2", **ASKED, block=2, out=tmp_path / "study", workers=1)
    for name, runs in done.runs.items():
        for one, other in zip(runs, again.runs[name], strict=True):
            assert one.record.same_as(other.record)


def test_blocks_of_seeds_share_compiled_functions(tmp_path):
    """For models of the zoo, the next block uses the same objects; files are read again."""
    asked = Study(
        ("tiger:horizon=2",),
        ("posterior_sampling",),
        episodes=5,
        seeds=4,
        block=2,
        priors=("declared", "flat"),
    )
    first, second, flat, _ = (
        begin(asked, unit, find_again(unit.model))[0].task for unit in asked.units()
    )
    for part in ("world", "explorer", "planner", "model"):
        assert getattr(first, part) is getattr(second, part)
    assert flat.world is first.world
    assert flat.model is not first.model
    file = tmp_path / "mine.py"
    file.write_text(MODEL)
    assert find_again(f"{file}:fixed") is not find_again(f"{file}:fixed")


def test_paired_differences_by_hand(done):
    """The mean difference and Student's interval, computed from the regrets."""
    runs = {rule: several for (_, prior, rule), several in done.runs.items() if prior == "declared"}
    first, second = study.summarise(runs, 0.2)
    gaps = np.array([b.regret[-1] - a.regret[-1] for a, b in zip(*runs.values(), strict=True)])
    reach = student.ppf(0.975, 2) * gaps.std(ddof=1) / np.sqrt(3)
    assert second.less == pytest.approx(gaps.mean(), abs=1e-14)
    assert second.interval == pytest.approx((gaps.mean() - reach, gaps.mean() + reach), abs=1e-14)
    assert (first.less, first.interval) == (0.0, (0.0, 0.0))
    assert first.regret == pytest.approx(np.mean([run.regret[-1] for run in runs["greedy"]]))


def test_saved_runs_can_be_drawn(done):
    runs = {rule: several for (_, prior, rule), several in done.runs.items() if prior == "declared"}
    assert draw_optimism(runs).get_title() == "tiger"


def test_a_unit_that_fails_is_reported(tmp_path):
    """Alpha-vectors cannot plan optimistic backups; the other rule is completed."""
    asked = {
        "explorers": ["greedy", "quantile_backup"],
        "episodes": 3,
        "seeds": 1,
        "priors": ["declared"],
    }
    done = study.compare(
        "tiger:horizon=2", **asked, planner="alpha_vectors", out=tmp_path / "study", workers=1
    )
    assert [unit.rule for unit in done.failed] == ["quantile_backup"]
    assert "only the history tree" in next(iter(done.failed.values()))
    assert ("tiger:horizon=2", "declared", "greedy") in done.runs


def test_journals_that_have_not_begun(tmp_path):
    asked = Study(("tiger:horizon=2",), ("greedy",), seeds=1)
    world = find_world("tiger:horizon=2")
    directory = StudyDirectory.create(tmp_path, asked, {"tiger:horizon=2": world})
    assert read_run(directory, next(directory.units()), 0) is None
