# SPDX-License-Identifier: Apache-2.0
"""Learning curves that were held out for reporting, for curves.py.

They have the format of curve_kinds.py: Q-learning, differential evolution, single trees, cyclic
learning rates, and modular sums that generalize late. They were used for the report of 2026-11-23,
see doc/search-quality.md, so the next report needs new ones.
"""
import math

import numpy as np

from curve_kinds import (ADAM, MOMENTUM, cross, descend, digits, points, powers, settings,
                         side_by_side)


def qlearn(steps):
    """Q-learning next to a cliff; a step is 15 more games. The loss is the mean over 12 greedy games."""
    wide, high, moves = 7, 4, 40
    grid = dict(lr=powers(-1.7, 0, 8), explore=[0.02, 0.1, 0.3, 0.6], fade=[0, 0.02, 0.1],
                discount=[0.8, 0.95, 1.0], start=[-3, 0], expected=[0, 1])
    keys = list(points(grid))
    c = dict(zip(grid, np.array(keys, float).T))
    rng, n = np.random.default_rng(3), len(keys)
    who, q = np.arange(n), np.repeat(c["start"], wide * high * 4).reshape(n, wide * high, 4)
    way = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def play(explore, learns):
        at, over, total = np.zeros((n, 2), int), np.zeros(n, bool), np.zeros(n)
        for _ in range(moves):
            s = at[:, 0] * high + at[:, 1]
            a = (q[who, s] + 1e-9 * rng.random((n, 4))).argmax(1)
            a = np.where(rng.random(n) < explore, rng.integers(0, 4, n), a)
            turn = np.where(rng.random(n) < 0.1, rng.integers(0, 4, n), a)
            to = (at + way[turn]).clip(0, [wide - 1, high - 1])
            falls = (to[:, 1] == 0) & (to[:, 0] > 0) & (to[:, 0] < wide - 1)
            wins = (to[:, 1] == 0) & (to[:, 0] == wide - 1)
            reward, end = np.where(falls, -5.0, -0.1) + wins, falls | wins
            if learns:
                z = q[who, to[:, 0] * high + to[:, 1]]
                mixed = (1 - explore) * z.max(1) + explore * z.mean(1)
                after = np.where(c["expected"] > 0, mixed, z.max(1))
                error = reward + c["discount"] * after * ~end - q[who, s, a]
                q[who, s, a] += c["lr"] * error * ~over
            total += reward * ~over
            over = over | end
            at = np.where(over[:, None], at, to)
        return total

    curves = np.zeros((n, steps))
    for e in range(steps):
        for _ in range(15):
            play(c["explore"] * np.exp(-c["fade"] * e), True)
        curves[:, e] = -np.mean([play(0, False) for _ in range(12)], 0)
    return grid, {k: (1, curve) for k, curve in zip(keys, curves)}


def evolve(steps):
    """Differential evolution of ten numbers; a step is 40 evaluations. Mean of the best values of three runs."""
    grid = dict(size=[5, 10, 20, 40], factor=powers(-1, 0.2, 6), crossing=[0.1, 0.3, 0.6, 0.9, 1.0],
                best=[0, 1], jitter=[0, 0.3])
    rng = np.random.default_rng(3)
    turn, shift = np.linalg.qr(rng.normal(size=(10, 10)))[0], rng.uniform(-2, 2, 10)
    rest = list(points({k: v for k, v in grid.items() if k != "size"})) * 3
    factor, crossing, best, jitter = (v[:, None] for v in np.array(rest, float).T)

    def loss(x):
        z = (x - shift) @ turn
        return np.log(1e-2 + (z * z * 10 ** np.linspace(0, 2, 10) / 10
                              + 5 - 5 * np.cos(3 * z)).sum(-1))

    rows = {}
    for size in grid["size"]:
        n = len(rest)
        x, who = rng.uniform(-5, 5, (n, size, 10)), np.arange(n)
        y, curves = loss(x), np.zeros((n, steps))
        for e in range(steps):
            for k in range(40):
                i, (a, b, c) = k % size, rng.integers(0, size, (3, n))
                base = np.where(best > 0, x[who, y.argmin(1)], x[who, a])
                f = factor * (1 + jitter * rng.normal(size=(n, 1)))
                moved = base + f * (x[who, b] - x[who, c])
                new = np.where(rng.random((n, 10)) < crossing, moved, x[:, i])
                value = loss(new)
                won = value < y[:, i]
                x[won, i], y[won, i] = new[won], value[won]
            curves[:, e] = y.min(1)
        for k, curve in zip(rest, curves.reshape(3, n // 3, steps).mean(0)):
            rows[(size, *k)] = 1, curve
    return grid, rows


def trees(steps):
    """One decision tree on the digits; a step adds 40 training points. The loss is an error rate, so there are ties."""
    from sklearn.tree import DecisionTreeClassifier
    x, y, xv, yv = digits(0.2, 40 * steps)
    grid = dict(depth=[3, 5, 7, 10, 14, 30], leaf=[1, 2, 5, 12], features=[0.1, 0.3, 1.0],
                anyhow=[0, 1], prune=[0, 2e-3, 1e-2])
    rows = {}
    for key in points(grid):
        depth, leaf, features, anyhow, prune = key
        model = DecisionTreeClassifier(
            max_depth=depth, min_samples_leaf=leaf, max_features=features, ccp_alpha=prune,
            splitter="random" if anyhow else "best", random_state=1)
        rows[key] = 1, [(model.fit(x[:n], y[:n]).predict(xv) != yv).mean()
                        for n in range(40, len(y) + 1, 40)]
    return grid, rows


def restarts(steps):
    """Denoising autoencoders on the digits with cyclic learning rates, which give wavy curves."""
    import torch
    x, _, xv, _ = digits(0, 500)
    noisy = [v + 0.3 * np.random.default_rng(3).normal(size=v.shape).astype(np.float32)
             for v in (x, xv)]
    grid = dict(hidden=[4, 12, 32], lr=powers(-3, 0.5, 8), rule=[MOMENTUM, ADAM], waves=[1, 3, 6],
                gain=[0.4, 1.2], decay=[0, 3e-3])

    def late(a, t):
        w = a["waves"]
        return 0.02 + 0.49 * (1 + torch.cos(math.pi * (w * t - torch.floor(w * t))))

    def train(hidden, columns):
        return descend(lambda p, v: torch.tanh(v @ p[0] + p[1][:, None]) @ p[2] + p[3][:, None],
                       [(64, hidden), (hidden,), (hidden, 64), (64,)], settings(columns),
                       (noisy[0], x, noisy[1], xv), steps, 50, 5,
                       lambda z, y: ((z - y) ** 2).mean((1, 2)), late)
    return side_by_side(grid, ("hidden",), train, lambda hidden: 1 + hidden / 32)


def modular(steps):
    """Sums modulo 13 of pairs, two thirds of them known: memorized first, generalized late."""
    import torch
    rng = np.random.default_rng(3)
    pairs = rng.permutation(13 * 13)
    one = np.hstack([np.eye(13)[pairs // 13], np.eye(13)[pairs % 13]]).astype(np.float32)
    y = (pairs // 13 + pairs % 13) % 13
    data = one[:112], y[:112], one[112:], y[112:]
    grid = dict(hidden=[24, 64], lr=powers(-2.5, 0, 6), rule=[MOMENTUM, ADAM],
                decay=[0, 1e-3, 5e-3, 2e-2], gain=[0.5, 1, 2], square=[0, 1])

    def train(hidden, columns):
        square = torch.tensor(columns["square"])[:, None, None]

        def model(p, x):
            z = x @ p[0] + p[1][:, None]
            return torch.where(square > 0, z * z, torch.relu(z)) @ p[2] + p[3][:, None]
        return descend(model, [(26, hidden), (hidden,), (hidden, 13), (13,)], settings(columns),
                       data, steps, 8, 23, cross)
    return side_by_side(grid, ("hidden",), train, lambda hidden: 1 + hidden / 48)


UNSEEN = {f.__name__: (f, steps) for f, steps in (
    (qlearn, 60), (evolve, 50), (trees, 25), (restarts, 48), (modular, 72))}
