"""The learning loop: the same seed is the same run, values are exact, policies see what they may, and what is refused."""

import re
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.special import expit

from homdp_ppl import POMDP, GraphPolicy, Kernels, evaluate, explorers, homdp, learn, learning, models, tabular
from homdp_ppl.errors import DataError, DeclarationError, ParameterError, PlanningError
from homdp_ppl.planners import alpha_vectors, bounded_search, history_tree
from tests.planners.exact import optimum
from tests.posteriors.programs import logistic
from tests.runs import TREE, differences, small


def readable(name, explorer, episodes, seed=0, **options):
    """A run of the readable loop on the tree of histories."""
    return learn(small(name), explorer, TREE, episodes, seed, compiled=False, **options)


def hearing(accuracies=(0.6, 0.75, 0.85, 0.95)):
    """HOP-V on the tiger: T is known, O one of a few."""
    tiger = small("tiger")
    return explorers.hop_v([tiger], [tiger.homdp.at(accuracy=p) for p in accuracies], delta=0.5)


# Same seed, same run


@pytest.mark.parametrize("make", [explorers.greedy, explorers.posterior_sampling, explorers.tight, explorers.epsilon_greedy])
def test_same_seed_same_run(make):
    """Also with a fresh rule, after other runs, and whatever happens to global generators."""
    first = readable("tiger_table", make(), 30, seed=4)
    np.random.seed(0)  # noqa: NPY002
    other = readable("tiger_table", make(), 30, seed=5)
    np.random.uniform(size=10)  # noqa: NPY002
    assert differences(first, readable("tiger_table", make(), 30, seed=4)) == []
    assert set(differences(first, other)) >= {"observations", "states"}


def test_a_sequence_of_seeds_is_several_runs():
    runs = readable("tiger", explorers.greedy(), 20, seed=[7, 2, 7])
    assert [run.task.seed for run in runs] == [7, 2, 7]
    assert differences(runs[0], readable("tiger", explorers.greedy(), 20, seed=7)) == []
    assert differences(runs[1], readable("tiger", explorers.greedy(), 20, seed=np.int64(2))) == []
    assert differences(runs[0], runs[2]) == []
    assert len(readable("tiger", explorers.greedy(), 3, seed=range(2))) == 2


@pytest.mark.parametrize(
    ("explorer", "stops"),
    [
        (explorers.greedy(), (0, 1, 13)),
        (explorers.tight(), (0, 1, 13)),
        (explorers.value_quantile(draws=3), (5,)),
        (explorers.uniform(), (0, 1, 13)),
    ],
    ids=lambda value: getattr(value, "rule", None),
)
def test_stopping_and_resuming_is_one_run(explorer, stops):
    whole = readable("tiger_table", explorer, 40)
    for stop in stops:
        run = readable("tiger_table", explorer, 40, stop_after=stop)
        assert len(run.values) == len(run.played) == stop
        assert differences(run.resume(), whole) == []
        assert differences(run.resume(stop + 3).resume(30).resume(), whole) == []
    assert differences(whole.resume(), whole) == []


def test_stopping_and_resuming_hop_v():
    """Runs stop between epochs: 20 episodes of 3 steps are 6 epochs, and 2 episodes are left over."""
    whole = readable("tiger", hearing(), 20)
    assert (len(whole.values), len(whole.played)) == (6, 18)
    for stop, epochs in ((0, 0), (2, 0), (3, 1), (10, 3), (19, 6), (100, 6)):
        run = readable("tiger", hearing(), 20, stop_after=stop)
        assert (len(run.values), len(run.played)) == (epochs, 3 * epochs)
        assert set(differences(run.resume(), whole)) <= {"plans"}  # what a search remembers is not kept
        for ours, theirs in zip(run.resume().state.memory, whole.state.memory, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_stopping_and_resuming_with_a_sampled_posterior():
    """NUTS goes on from where its chains stand, with keys made from seed, rule and number of episodes."""
    world = logistic().at(ear=1.5)
    rule = explorers.posterior_sampling()
    begun = [
        *learn(world, rule, TREE, 1, seed=[1, 2], stop_after=0),
        learn(world, explorers.quantile_backup(), TREE, 1, 1, stop_after=0),
    ]
    assert len({tuple(run.state.luck) for run in begun}) == 3  # neither seeds nor rules share the sampler's noise
    whole = learn(world, rule, TREE, 16, seed=1)
    assert "needs more than array functions" in whole.loop
    assert whole.state.memory.base.method == "nuts"
    for stop in (0, 3, 9):
        run = learn(world, rule, TREE, 16, seed=1, stop_after=stop).resume()
        assert differences(run, whole) == []
        np.testing.assert_array_equal(run.posterior.mean.emission, whole.posterior.mean.emission)
    heard = whole.record.states[:, :-1] == whole.record.observations
    z = np.linspace(-6, 8, 20_001)  # the posterior of the logistic accuracy, by quadrature
    density = np.exp(-((z - 1) ** 2) / 2) * expit(z) ** heard.sum() * expit(-z) ** (~heard).sum()
    exact = np.average(expit(z), weights=density)
    assert whole.posterior.mean.emission[0, 0] == pytest.approx(exact, abs=0.01)  # sd 0.06, some 200 effective draws or more


# Exact values


@pytest.mark.parametrize(
    ("name", "explorer"),
    [
        ("tiger_table", explorers.greedy(known=False)),
        ("tiger_table", explorers.posterior_sampling()),
        ("random", explorers.tight()),
        ("lock", explorers.quantile_backup()),
        ("tiger_listen", explorers.epsilon_greedy()),
        ("lock", explorers.quantile_bonus()),
    ],
    ids=str,
)
def test_values_are_exact(name, explorer):
    """Of every round's policy, planned again from what was known then; none is above the optimum."""
    run = readable(name, explorer, 25, seed=3)
    assert run.optimum == pytest.approx(optimum(small(name).pomdp), abs=1e-12)
    for k in range(25):
        assert run.values[k] == pytest.approx(evaluate(run.policy_at(k), small(name).pomdp), abs=1e-12)
    np.testing.assert_array_equal(run.played, run.values)
    assert run.gaps.min() >= -1e-9
    np.testing.assert_allclose(run.regret, np.cumsum(run.optimum - run.values))
    assert evaluate(run.policy, small(name).pomdp) == pytest.approx(run.values[-1], abs=1e-12)


def test_the_oracle_has_no_regret():
    for name in ("tiger", "lock", "random"):
        run = readable(name, explorers.oracle(small(name)), 5)
        np.testing.assert_allclose(run.gaps, 0.0, atol=1e-12)
        np.testing.assert_allclose(run.optimistic, run.optimum, atol=1e-12)
        assert run.was_optimistic.all()
        np.testing.assert_array_equal(run.record.planned, np.arange(5) == 0)


class UniformAt:
    """A policy that acts at random at one step, asked step by step."""

    def __init__(self, policy, step):
        self.policy, self.step = policy, step

    def act(self, observations, actions):
        """Uniform if it is time for it."""
        chances = self.policy.act(observations, actions)
        return np.full_like(chances, 1 / len(chances)) if len(observations) == self.step else chances


def test_hop_v_plays_each_policy_uniform_at_each_step():
    """Algorithm 2: values are those of pi-hat, played those of pi-hat o_h Unif(A) for h = 1..H, worse by what chance costs."""
    run, world = readable("tiger", hearing(), 18, seed=2), small("tiger").pomdp
    for k in range(6):
        policy = run.policy_at(k)
        assert run.values[k] == pytest.approx(evaluate(policy, world), abs=1e-12)
        for h in range(3):
            expected = evaluate(UniformAt(policy, h + 1), small("tiger").pomdp)
            assert run.played[3 * k + h] == pytest.approx(expected, abs=1e-12)
    assert run.played.max() < run.values.min()


def raw_estimates(episodes, before):
    """T-hat and O-hat of some episodes with 3 states, 2 actions and 3 observations; uniform where nothing was seen."""
    transition, emission = np.zeros((3, 2, 3)), np.zeros((3, 3))
    for episode in episodes[:before]:
        for h in range(len(episode.actions)):
            transition[episode.states[h], episode.actions[h], episode.states[h + 1]] += 1
            emission[episode.states[h], episode.observations[h]] += 1
    return (
        np.where(n.sum(-1, keepdims=True) > 0, n / np.maximum(n.sum(-1, keepdims=True), 1), 1 / 3) for n in (transition, emission)
    )


def test_impossible_histories_happen_and_are_counted():
    """With raw estimates something that the planned model excludes is seen in about one of six early episodes."""
    world = models.load("random")
    runs = learn(world, explorers.greedy(known=False), TREE, 12, seed=range(25), compiled=False)
    for run in runs[:4]:
        for k, episode in enumerate(run.episodes):
            T, O = raw_estimates(run.episodes, k)  # noqa: E741
            belief, impossible = world.pomdp.initial, 0
            for y, a in zip(episode.observations, episode.actions, strict=True):
                joint = belief * O[:, y]
                impossible += joint.sum() == 0
                belief = (joint / joint.sum() if joint.sum() > 0 else belief) @ T[:, a]
            assert run.impossible[k] == impossible
    early = np.mean([run.impossible[:6] > 0 for run in runs])
    assert 1 / 10 < early < 1 / 4


# The information barrier, and where randomness comes from


class Spy(GraphPolicy):
    """A policy that writes down what it is handed, and then spoils it."""

    def __init__(self, policy, diary):
        super().__init__(policy.start, policy.probabilities, policy.successor)
        self.diary = diary

    def act(self, *handed):
        """As the policy that it imitates."""
        answer = super().act(*handed)
        self.diary.append(("act", *(part.copy() for part in handed)))
        for part in handed:
            part[:] = -1
        return answer


def test_policies_are_handed_what_may_be_seen():
    """At step h: y_1..y_h and a_1..a_{h-1}, in copies; states come to the rule, after the last action."""
    diary: list = []
    world, base = small("tiger_listen"), explorers.greedy()

    def planner(model: POMDP):
        plan = TREE(model)
        return plan._replace(policy=Spy(plan.policy, diary))

    def propose(key, state):
        diary.append(("propose", int(state.played)))
        return base.propose(key, state)

    def update(state, episode):
        diary.append(("update", episode))
        return base.update(state, episode)

    run = learn(world, replace(base, propose=propose, update=update), planner, 6, seed=1)
    assert run.loop == "readable loop (the planner cannot be traced)"
    for k, episode in enumerate(run.episodes):
        proposed, *acts, updated = diary[5 * k : 5 * k + 5]
        assert proposed == ("propose", k)
        assert updated[0] == "update"
        np.testing.assert_array_equal(updated[1].states, episode.states)
        for h, (word, *handed) in enumerate(acts):
            assert word == "act"
            assert len(handed) == 2
            np.testing.assert_array_equal(handed[0], episode.observations[: h + 1])
            np.testing.assert_array_equal(handed[1], episode.actions[:h])
    assert len(diary) == 30
    assert differences(run, learn(world, explorers.greedy(), TREE, 6, seed=1)) == []


def test_the_world_has_the_same_luck_for_every_rule():
    """Rules that deploy the same policy see the same episodes; others start alike as long as they act alike."""
    oracle = explorers.oracle(small("tiger"))
    first, namesake = (readable("tiger", rule, 60) for rule in (oracle, replace(oracle, rule="another name")))
    assert differences(first, namesake) == []
    others = [readable("tiger", rule, 60) for rule in (explorers.greedy(), explorers.uniform(), explorers.posterior_sampling())]
    for other in others:
        np.testing.assert_array_equal(first.record.states[:, 0], other.record.states[:, 0])
        np.testing.assert_array_equal(first.record.observations[:, 0], other.record.observations[:, 0])
        same = (first.record.actions == other.record.actions).cumprod(1).astype(bool)  # so far
        np.testing.assert_array_equal(first.record.states[:, 1:][same], other.record.states[:, 1:][same])
        assert not same.all()


def test_rules_have_luck_of_their_own():
    """From the name of the rule: random actions and posterior draws differ under another name."""
    for rule in (explorers.uniform(), explorers.posterior_sampling()):
        ours, theirs = (readable("tiger_table", r, 30) for r in (rule, replace(rule, rule="another name")))
        assert "actions" in differences(ours, theirs)
        np.testing.assert_array_equal(ours.record.states[:, 0], theirs.record.states[:, 0])


# Planning again


@pytest.mark.parametrize("explorer", [explorers.tight(), explorers.hop_b(scale=0.1), explorers.greedy(replan="doubled")], ids=str)
def test_planning_when_a_count_has_doubled(explorer):
    """Exactly when some n(x, a) >= max(1, 2 n(x, a) then), by counting the episodes; values and policies stay in between."""
    run = readable("tiger_table", explorer, 80)
    now, then = np.zeros((2, 3), dtype=int), None
    for k, episode in enumerate(run.episodes):
        due = then is None or any(now[x, a] >= max(1, 2 * then[x, a]) for x in range(2) for a in range(3))
        assert run.record.planned[k] == due
        then = now.copy() if due else then
        np.add.at(now, (episode.states[:-1], episode.actions), 1)
        if not due:
            assert run.values[k] == run.values[k - 1]
            assert run.optimistic[k] == run.optimistic[k - 1]
    np.testing.assert_array_equal(run.record.plans, run.record.planned)
    assert 5 < run.record.planned.sum() < 40
    for k in (0, 7, 41, 79):
        assert evaluate(run.policy_at(k), small("tiger_table").pomdp) == pytest.approx(run.values[k], abs=1e-12)


def test_planning_once():
    run = readable("tiger_table", explorers.greedy(replan="once"), 30)
    np.testing.assert_array_equal(run.record.planned, np.arange(30) == 0)
    assert len(set(run.values)) == 1
    assert evaluate(run.policy_at(29), small("tiger_table").pomdp) == pytest.approx(run.values[0], abs=1e-12)


# The learner's own declaration


def test_a_learner_who_knows_less():
    """The tiger for one who knows no structure: learns its tables, in the world's episodes."""
    run = learn(small("tiger"), explorers.greedy(), TREE, 400, model=small("tiger_table").homdp, compiled=False)
    assert run.posterior.homdp.name == "tiger_table"
    assert (run.to_dataset().attrs["model"], run.to_dataset().attrs["learner"]) == ("tiger", "tiger_table")
    assert run.gaps[-100:].mean() < 0.02
    assert np.abs(run.posterior.mean.transition[:, 0] - np.eye(2)).max() < 0.05


def test_a_checkup_by_someone_who_knows_no_medicine():
    world = models.load("checkup", horizon=2)
    run = learn(world, explorers.greedy(), TREE, 5, model=models.load("checkup_table", horizon=2).homdp)
    assert len(run.values) == 5
    assert run.optimum == pytest.approx(optimum(world.pomdp), abs=1e-12)


@pytest.mark.parametrize(
    "explorer",
    [
        explorers.greedy(),
        explorers.tight(),
        explorers.posterior_sampling(),
        explorers.quantile_backup(),
        explorers.quantile_bonus(bound=True),
        explorers.value_quantile(draws=3),
        explorers.uniform(),
        explorers.oracle(small("tiger")),
    ],
    ids=str,
)
def test_a_world_that_the_learner_holds_impossible(explorer):
    """The tiger walks while one listens: the readable loop runs, says why, and still evaluates exactly."""
    wild = small("tiger_table").homdp.at(T=np.full((2, 3, 2), 0.5), O=small("tiger_table").pomdp.emission)
    run = learn(wild, explorer, TREE, 1500, stop_after=12, model=small("tiger").homdp)
    assert run.loop == "readable loop (the world can show what the learner's declaration excludes)"
    assert run.gaps.min() >= -1e-9
    assert run.values[5] == pytest.approx(evaluate(run.policy_at(5), wild.pomdp), abs=1e-12)
    with pytest.raises(DataError, match=r"left, listen, right.*declared impossible"):
        run.posterior  # noqa: B018


def test_observations_that_the_learner_holds_impossible():
    """The policy goes on, and the run counts them."""
    world = small("tiger_listen")  # silence, and growls after listening

    @homdp(**world.spaces._asdict(), reward=world.homdp.reward[0])
    def deaf():
        p = numpyro.sample("p", dist.Beta(1, 1))
        moves = jnp.asarray(world.pomdp.transition)
        blur = jnp.array([[p, 1 - p, 0.0, 0.0], [1 - p, p, 0.0, 0.0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]])
        silence = np.array([[1.0, 0.0, 0.0]] * 4)
        return Kernels(world.pomdp.initial, jnp.einsum("xaz,zw->xaw", moves, blur), silence)

    run = learn(world, explorers.greedy(), TREE, 8, model=deaf)
    listened = (run.record.actions[:, :-1] == 0).sum(1)
    np.testing.assert_array_equal(run.impossible, listened)
    assert listened.sum() > 0


# Foresight


def test_foresight_never_learns_to_hear():
    """A collector who sees the tiger opens the right door at every step, worth H; scored is the policy that hears."""
    seeing, hindsight = (readable("tiger_listen", explorers.greedy(), 60, foresight=seeing) for seeing in (True, False))
    assert (seeing.record.actions != 0).all()
    assert (hindsight.record.actions == 0).any()
    np.testing.assert_allclose(seeing.played, 3.0, atol=1e-12)
    right = np.where(seeing.record.states[:, :-1] % 2 == 0, 2, 1)  # tiger on the left: open right
    np.testing.assert_array_equal(seeing.record.actions, right)
    for k in (0, 30, 59):
        assert seeing.values[k] == pytest.approx(evaluate(seeing.policy_at(k), small("tiger_listen").pomdp), abs=1e-12)
    assert (seeing.values == seeing.values[0]).all()  # nothing that matters is learned
    assert seeing.state.counts.visits[2:].sum() == 0
    assert hindsight.gaps[-1] < 0.001 < seeing.gaps[-1]
    assert seeing.loop == "readable loop (foresight is played step by step)"
    assert seeing.to_dataset().attrs["foresight"] == 1


def test_foresight_sees_the_same_luck():
    seeing, hindsight = (readable("tiger_listen", explorers.greedy(), 40, foresight=seeing) for seeing in (True, False))
    np.testing.assert_array_equal(seeing.record.states[:, 0], hindsight.record.states[:, 0])


# What is refused


def unknown_start():
    """A tiger whose first place is unknown."""
    tiger = small("tiger")

    @homdp(**tiger.spaces._asdict(), reward=tiger.homdp.reward[0])
    def unknown_start():
        p = numpyro.sample("p", dist.Beta(1, 1))
        return Kernels(jnp.array([p, 1 - p]), tiger.pomdp.transition, tiger.pomdp.emission)

    return unknown_start


def other_tiger(**changes):
    """The tiger's tables with other rewards, names or horizon."""
    tiger = small("tiger")
    told = dict(zip(("states", "observations", "actions", "horizon"), tiger.spaces, strict=True))
    parts = {"T": tiger.pomdp.transition, "O": tiger.pomdp.emission, "initial": tiger.pomdp.initial}
    return tabular(**{**parts, **told, "reward": tiger.homdp.reward[0], **changes})


REFUSED = [
    ({"world": "homdp"}, "world: got a HOMDP; expected a World. Fix the parameters of a declaration"),
    ({"explorer": explorers.greedy}, "explorer: got a function; expected an Explorer. Call its factory"),
    ({"explorer": "greedy"}, "explorer: got a str"),
    ({"planner": history_tree}, "planner: got history_tree; expected a function from a POMDP to a Plan. Call its factory"),
    ({"planner": bounded_search}, "planner: got bounded_search"),
    ({"planner": "tree"}, "planner: got a str"),
    ({"episodes": 0}, "episodes: got 0; expected a whole number of at least 1"),
    ({"episodes": 2.5}, "episodes: got 2.5"),
    ({"seed": -1}, "seed: got [-1]; expected whole numbers"),
    ({"seed": []}, "seed: got []"),
    ({"seed": 1.5}, "seed: got [1.5]"),
    ({"seed": [0, "1"]}, "seed: got [0, '1']"),
    ({"seed": None}, "seed: got [None]"),
    ({"seed": 2**63}, "seed: got [9223372036854775808]"),
    ({"stop_after": -1}, "stop_after: got -1; expected a number of episodes of at least 0"),
    ({"stop_after": 2.5}, "stop_after: got 2.5"),
    ({"model": "world"}, "model: got a World; expected a HOMDP. Of a world, take the declaration"),
    ({"model": {"horizon": 4}}, "horizon=4"),
    ({"model": {"states": ("links", "rechts")}}, "links"),
    ({"model": {"reward": np.zeros((2, 3))}}, "model: got other rewards; expected the world's rewards"),
    ({"explorer": hearing(), "episodes": 2}, "episodes: got 2; expected at least one epoch of 3 episodes"),
]


@pytest.mark.parametrize(("wrong", "told"), REFUSED, ids=[told[:30] for _, told in REFUSED])
def test_refused(wrong, told):
    tiger = small("tiger")
    wrong = dict(wrong)
    if "world" in wrong:
        wrong["world"] = tiger.homdp
    if "model" in wrong:
        wrong["model"] = tiger if wrong["model"] == "world" else other_tiger(**wrong["model"])
    arguments = {"world": tiger, "explorer": explorers.greedy(), "planner": TREE, "episodes": 10} | wrong
    with pytest.raises(ParameterError, match=re.escape(told)):
        learn(**arguments)


def test_all_problems_at_once():
    with pytest.raises(ParameterError, match="learn: 5 problems"):
        learn(small("tiger").homdp, explorers.greedy, history_tree, 0, seed=-1)


def test_an_unknown_start_is_refused():
    with pytest.raises(DeclarationError, match="initial distribution that depends on p"):
        learn(small("tiger"), explorers.greedy(), TREE, 10, model=unknown_start())


def test_rules_and_planners_that_do_not_go_together():
    with pytest.raises(PlanningError, match=r"alpha_vectors, which has no optimistic backups; expected planner=history_tree\(\)"):
        learn(small("tiger"), explorers.quantile_backup(), alpha_vectors(), 10)
    with pytest.raises(PlanningError, match=r"a gap of 0\..*exact planner.*planner=history_tree\(\) or alpha_vectors\(\)"):
        learn(small("tiger_table"), explorers.value_quantile(draws=3), bounded_search(gap=0.9), 10)
    run = learn(small("tiger_table"), explorers.value_quantile(draws=3), alpha_vectors(), 3)
    assert differences(run, learn(small("tiger_table"), explorers.value_quantile(draws=3), TREE, 3), tolerance=1e-8) == []


# Progress


def test_progress(capsys, monkeypatch):
    """A bar on stderr: when asked for on a terminal, and by default only if it takes long; the run is the same."""
    quiet = readable("tiger", explorers.greedy(), 3, progress=True)  # not on a terminal
    assert "".join(capsys.readouterr()).strip() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    for patience, wanted, shown in ((1e9, None, False), (0.0, None, True), (1e9, True, True), (0.0, False, False)):
        monkeypatch.setattr(learning, "PATIENCE", patience)
        run = readable("tiger", explorers.greedy(), 3, progress=wanted)
        told = capsys.readouterr()
        assert ("learning" in told.err) == shown
        assert told.out == ""
        assert differences(quiet, run) == []
