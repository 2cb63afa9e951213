"""A naive learning loop: plain Python, recursion over histories, lists of floats.

Three rules, HOP-B, quantile_backup and posterior_sampling, with exact evaluation of every policy.
Written from the definitions, without code of the library.
"""

# ruff: noqa: E741

from __future__ import annotations

import math
import random


class Naive:
    """A learner for tables with flat Dirichlet priors."""

    def __init__(self, pomdp, episodes, rule, prior=1.0, delta=0.1, z=1.645):
        self.rho, self.T, self.O, self.r = (part.tolist() for part in pomdp.stationary())
        self.X, self.A, self.Y, self.H = len(self.rho), len(self.T[0]), len(self.O[0]), len(self.r)
        self.K, self.rule, self.prior, self.delta, self.z = episodes, rule, prior, delta, z
        self.nT = [[[0] * self.X for _ in range(self.A)] for _ in range(self.X)]
        self.nO = [[0] * self.Y for _ in range(self.X)]

    def episode(self, rng):
        """Run one round: propose, plan, evaluate, play, update.

        Returns the exact value of the policy.
        """
        T, O, r = self.propose(rng)
        policy = {}
        for y in range(self.Y):
            belief = normalised([self.rho[x] * O[x][y] for x in range(self.X)], self.rho)
            self.plan(T, O, r, 0, (y,), belief, policy)
        value = sum(
            self.evaluate(0, (y,), [self.rho[x] * self.O[x][y] for x in range(self.X)], policy)
            for y in range(self.Y)
        )
        self.play(policy, rng)
        return value

    def propose(self, rng):
        """The model to plan for."""
        if self.rule == "hop_b":
            T = [[relative(row) for row in rows] for rows in self.nT]
            O = [relative(row) for row in self.nO]
            X, Y, A, H, K = self.X, self.Y, self.A, self.H, self.K
            beta_1 = 4 * H**3 * math.log(Y * X * A * H * K / self.delta)
            beta_2 = 8 * Y * math.log(Y * X * K * H / self.delta)
            seen = [min(math.sqrt(beta_2 / n), 2) if (n := sum(row)) else 2 for row in self.nO]
            done = [
                [min(math.sqrt(beta_1 / n), 2 * H) if (n := sum(row)) else 2 * H for row in rows]
                for rows in self.nT
            ]
            r = [
                [[self.r[h][x][a] + H * seen[x] + done[x][a] for a in range(A)] for x in range(X)]
                for h in range(H)
            ]
            return T, O, r
        T = [[[self.prior + n for n in row] for row in rows] for rows in self.nT]
        O = [[self.prior + n for n in row] for row in self.nO]
        if self.rule == "posterior_sampling":
            return (
                [[dirichlet(row, rng) for row in rows] for rows in T],
                [dirichlet(row, rng) for row in O],
                self.r,
            )
        self.totals = [[sum(row) for row in rows] for rows in T], [sum(row) for row in O]
        return [[relative(row) for row in rows] for rows in T], [relative(row) for row in O], self.r

    def plan(self, T, O, r, h, history, belief, policy):
        """The alpha-vector of the best action after a history."""
        vectors = []
        for a in range(self.A):
            vector = [r[h][x][a] for x in range(self.X)]
            if h + 1 < self.H:
                predicted = [
                    sum(belief[x] * T[x][a][z] for x in range(self.X)) for z in range(self.X)
                ]
                later = []
                for y in range(self.Y):
                    after = normalised([predicted[z] * O[z][y] for z in range(self.X)], predicted)
                    later.append(self.plan(T, O, r, h + 1, (*history, a, y), after, policy))
                vector = [vector[x] + self.backup(T, O, h, x, a, later) for x in range(self.X)]
            vectors.append(vector)
        values = [sum(b * v for b, v in zip(belief, vector, strict=True)) for vector in vectors]
        best = next(a for a in range(self.A) if values[a] >= max(values) - 1e-9 * self.H)
        policy[history] = best
        return vectors[best]

    def backup(self, T, O, h, x, a, later):
        """The expected continuation, or its upper quantile under Dirichlet rows."""
        g = [sum(O[z][y] * later[y][z] for y in range(self.Y)) for z in range(self.X)]
        mean = sum(T[x][a][z] * g[z] for z in range(self.X))
        if self.rule != "quantile_backup":
            return mean
        shrink = 1 / (self.totals[0][x][a] + 1)
        variance = shrink * (sum(T[x][a][z] * g[z] ** 2 for z in range(self.X)) - mean**2)
        for z in range(self.X):
            spread = (sum(O[z][y] * later[y][z] ** 2 for y in range(self.Y)) - g[z] ** 2) / (
                self.totals[1][z] + 1
            )
            variance += (T[x][a][z] ** 2 + shrink * T[x][a][z] * (1 - T[x][a][z])) * spread
        return min(self.H - h - 1, mean + self.z * math.sqrt(max(variance, 0.0)))

    def evaluate(self, h, history, joint, policy):
        """The exact value in the true world from joint weights of a history and the state."""
        a = policy[history]
        value = sum(joint[x] * self.r[h][x][a] for x in range(self.X))
        if h + 1 == self.H:
            return value
        onward = [sum(joint[x] * self.T[x][a][z] for x in range(self.X)) for z in range(self.X)]
        for y in range(self.Y):
            after = [onward[z] * self.O[z][y] for z in range(self.X)]
            if sum(after) > 0:
                value += self.evaluate(h + 1, (*history, a, y), after, policy)
        return value

    def play(self, policy, rng):
        """Act in the true world, and count the revealed episode."""
        x, history = draw(self.rho, rng), ()
        for _ in range(self.H):
            y = draw(self.O[x], rng)
            history = (*history, y)
            a = policy[history]
            following = draw(self.T[x][a], rng)
            self.nO[x][y] += 1
            self.nT[x][a][following] += 1
            history, x = (*history, a), following


def relative(row):
    """Relative frequencies, or uniform if all counts are zero."""
    total = sum(row)
    return [n / total for n in row] if total else [1 / len(row)] * len(row)


def normalised(weights, otherwise):
    """Normalise weights, or return another belief if they are all zero."""
    total = sum(weights)
    return [w / total for w in weights] if total > 0 else otherwise


def dirichlet(alpha, rng):
    """Draw from a Dirichlet distribution."""
    return relative([rng.gammavariate(a, 1.0) for a in alpha])


def draw(chances, rng):
    """Draw from a categorical distribution."""
    return rng.choices(range(len(chances)), chances)[0]


def run(pomdp, rule, episodes, seed=0):
    """The exact values of all policies of a run."""
    learner, rng = Naive(pomdp, episodes, rule), random.Random(seed)
    return [learner.episode(rng) for _ in range(episodes)]
