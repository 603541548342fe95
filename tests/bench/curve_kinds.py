# SPDX-License-Identifier: Apache-2.0
"""Learning curves of models other than perceptrons, for curves.py.

Each function below takes the number of steps and returns a grid of hyperparameters and rows: for
each grid point, the assumed seconds per step and the validation loss after each step. A step is
an epoch, a tree, an iteration, or some more training data. Optimisers are indices into RULES.
Needs scikit-learn; rnn, cnn, logistic and factors need PyTorch.
"""
import itertools
import math

import numpy as np

LEAST = 1e-3  # smallest probability whose logarithm is taken
# Moving average of the gradient: decay, weight of the new value; of its square: decay, weight, whether it is used
RULES = ((0, 1, 0, 0, 0), (0.9, 1, 0, 0, 0), (0, 1, 1, 1, 1), (0, 1, 0.95, 0.05, 1),
         (0.9, 0.1, 0.98, 0.02, 1))
SGD, MOMENTUM, ADAGRAD, RMSPROP, ADAM = range(5)


def powers(first, last, count):
    return [float("%.3g" % v) for v in np.logspace(first, last, count)]


def points(grid):
    return itertools.product(*grid.values())


def digits(wrong, count):
    """Return shuffled digits, with a share 'wrong' of the training labels redrawn: x, y, xv, yv."""
    from sklearn.datasets import load_digits
    rng = np.random.default_rng(3)
    x, y = load_digits(return_X_y=True)
    k = rng.permutation(len(y))
    x, y = x[k].astype(np.float32) / 16, y[k]
    train = np.where(rng.random(count) < wrong, rng.integers(0, 10, count), y[:count])
    return x[:count], train, x[count:], y[count:]


def unlikely(p, y):
    """Return the mean negative log-likelihood of the labels."""
    return -np.log(np.maximum(p[np.arange(len(y)), y], LEAST)).mean()


def boost(steps):
    """Boosted trees on the diabetes data; a step is a tree. High learning rates over-fit."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor
    x, y = load_diabetes(return_X_y=True)
    k = np.random.default_rng(3).permutation(len(y))
    x, y = x[k], (y[k] - y.mean()) / y.std()
    grid = dict(lr=powers(-2, 0.1, 10), depth=[1, 2, 3, 5], leaf=[1, 10], share=[0.4, 1],
                features=[0.2, 0.5, 1.0])
    rows = {}
    for key in points(grid):
        lr, depth, leaf, share, features = key
        model = GradientBoostingRegressor(
            learning_rate=lr, max_depth=depth, min_samples_leaf=leaf, subsample=share,
            max_features=features, n_estimators=steps, random_state=1).fit(x[:260], y[:260])
        rows[key] = 0.2 + depth * share * features, [
            ((p - y[260:]) ** 2).mean() for p in model.staged_predict(x[260:])]
    return grid, rows


def forest(steps):
    """Random forests on the digits; a step is a tree. One deep tree is worse than a shallow one, many are better."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    x, y, xv, yv = digits(0.1, 600)
    grid = dict(features=[0.03, 0.1, 0.25, 0.6], depth=[3, 6, 12, 25], leaf=[1, 3, 10],
                anyhow=[0, 1], entropy=[0, 1], share=[0.3, 1.0])
    rows = {}
    for key in points(grid):
        features, depth, leaf, anyhow, entropy, share = key
        model = (ExtraTreesClassifier if anyhow else RandomForestClassifier) (
            steps, criterion="entropy" if entropy else "gini", max_features=features,
            max_depth=depth, min_samples_leaf=leaf, bootstrap=True, max_samples=share,
            random_state=1).fit(x, y)
        sums = np.cumsum([t.predict_proba(xv) for t in model.estimators_], 0)
        rows[key] = 0.3 + share * (0.3 if anyhow else 0.3 + features), [
            unlikely(p / (n + 1), yv) for n, p in enumerate(sums)]
    return grid, rows


def kernel(steps):
    """Kernel ridge regression on the digits; a step adds 20 training points."""
    from scipy.linalg import cholesky, solve_triangular
    x, y, xv, yv = digits(0.15, 20 * steps)
    grid = dict(kind=[0, 1, 2], width=powers(-0.7, 1.3, 10), ridge=powers(-5, 1, 8),
                square=[0, 1])
    y, yv = (np.eye(10)[v] - 0.1 for v in (y, yv))

    def gram(a, b, kind, width):
        if kind == 2:
            return (a @ b.T / 10 + width) ** 3
        d = np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T, 0)
        return np.exp(-d / (4 * width) ** 2 if kind else -np.sqrt(d) / (4 * width))

    rows = {}
    for kind, width, square in itertools.product(grid["kind"], grid["width"], grid["square"]):
        a, b = (v.astype(float) ** (1 + square) for v in (x, xv))
        k, kv = gram(a, a, kind, width), gram(a, b, kind, width)
        for ridge in grid["ridge"]:
            # the first n rows of the factor depend only on the first n points
            low = cholesky(k + ridge * np.eye(len(k)), lower=True)
            z, v = solve_triangular(low, y, lower=True), solve_triangular(low, kv, lower=True)
            parts = np.cumsum([v[i:i + 20].T @ z[i:i + 20] for i in range(0, len(z), 20)], 0)
            rows[kind, width, ridge, square] = 1, ((parts - yv) ** 2).sum(2).mean(1)
    return grid, rows


def em(x, xv, steps, key):
    """Fit a mixture of Gaussians by EM; return the held-out loss after each pass."""
    k, floor, far, parts, fade, even = key
    rng = np.random.default_rng(5)
    mean = x[rng.choice(len(x), k, False)]
    for i in range(1, k if far else 1):
        d = ((x[:, None] - mean[:i]) ** 2).sum(2).min(1)
        mean[i] = x[rng.choice(len(x), p=d / d.sum())]
    var, weight, out, t = np.ones((k, x.shape[1])), np.full(k, 1 / k), [], 0
    total = np.full(k, 1 / k), mean / k, (mean ** 2 + 1) / k

    def parts_of(x):
        d = (x * x) @ (1 / var).T - 2 * x @ (mean / var).T + (mean * mean / var).sum(1)
        a = np.log(weight) - (d + np.log(var).sum(1)) / 2
        top = a.max(1, keepdims=True)
        p = np.exp(a - top)
        s = p.sum(1, keepdims=True)
        return p / s, (top + np.log(s)).mean()

    for _ in range(steps):
        for part in np.array_split(rng.permutation(len(x)), parts):
            p, _ = parts_of(x[part])
            t += 1
            rate = 1 if fade == 0 else (t + 1) ** -fade
            new = p.sum(0), p.T @ x[part], p.T @ (x[part] ** 2)
            total = [(1 - rate) * a + rate * b / len(part) for a, b in zip(total, new)]
            n = total[0][:, None] + 1e-9
            mean, weight = total[1] / n, total[0] + 1e-9 + even / k
            weight = weight / weight.sum()
            var = np.maximum(total[2] / n - mean ** 2, floor) + 1e-6
        out.append(-parts_of(xv)[1])
    return out


def mixture(steps):
    """Mixtures of Gaussians on principal components of the digits; a step is a pass. Too many components over-fit."""
    x, _, xv, _ = digits(0, 500)
    axes = np.linalg.svd(x - x.mean(0), full_matrices=False)[2][:12].T
    x, xv = ((v - x.mean(0)) @ axes for v in (x, xv))
    x, xv = x / x.std(), xv / x.std()
    grid = dict(k=[2, 4, 8, 16, 32, 64], floor=powers(-3, -0.3, 5), far=[0, 1], parts=[1, 5],
                fade=[0, 0.5, 0.8], even=[0, 1])
    return grid, {key: (0.2 + key[0] / 20, em(x, xv, steps, key)) for key in points(grid)}


def neighbours(steps):
    """Nearest neighbours on the digits; a step adds 40 training points. The best number of neighbours grows."""
    from scipy.spatial.distance import cdist
    x, y, xv, yv = digits(0.25, 40 * steps)
    axes = np.linalg.svd(x - x.mean(0), full_matrices=False)[2].T
    grid = dict(k=[1, 2, 4, 8, 16, 32], power=[1, 2, 4], dims=[4, 8, 16, 40], nearer=[0, 1, 4],
                even=[0.02, 0.1, 0.4])
    rows = {key: (1, []) for key in points(grid)}
    for power, dims in itertools.product(grid["power"], grid["dims"]):
        a, b = x @ axes[:, :dims], xv @ axes[:, :dims]
        d = cdist(b, a, "minkowski", p=power)
        for n in range(40, len(y) + 1, 40):
            near = np.argsort(d[:, :n], 1)[:, :32]
            dist, label = np.take_along_axis(d, near, 1) + 1e-3, np.eye(10)[y[near]]
            for k, nearer, even in itertools.product(grid["k"], grid["nearer"], grid["even"]):
                w = (dist[:, :1] / dist[:, :k]) ** nearer
                p = (w[:, :, None] * label[:, :k]).sum(1) / w.sum(1)[:, None]
                rows[k, power, dims, nearer, even][1].append(
                    unlikely((p + even / 10) / (1 + even), yv))
    return grid, rows


# ---- trained with gradients, many configurations in parallel ----

def descend(model, shapes, args, data, steps, batch, cap, loss, late=None):
    """Train and return curves (configuration, step). `args` has a column each for lr, rule, gain, decay and clip.
    The first axis of all parameters, and of what model(parameters, inputs) returns, is the configuration."""
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    a = {k: torch.tensor(v, dtype=torch.float32) for k, v in args.items()}
    count = len(a["lr"])
    tall = lambda v, p: v.reshape(-1, *[1] * (p.dim() - 1))
    p = [tall(a["gain"], torch.empty(1, *s)) * torch.randn(1, *s) / math.sqrt(math.prod(s[:-1]) or 1)
         if len(s) > 1 else torch.zeros(count, *s) for s in shapes]
    rule = torch.tensor(RULES)[a["rule"].long()]
    m, v = [torch.zeros_like(w) for w in p], [torch.zeros_like(w) for w in p]
    x, y, xv, yv = (torch.tensor(d) for d in data)
    curves, live = np.full((count, steps), float(cap)), np.full(count, True)
    for e in range(steps):
        rate = a["lr"] * (late(a, e / steps) if late else 1)
        for k in torch.randperm(len(y)).split(batch):
            p = [w.detach().requires_grad_() for w in p]
            g = torch.autograd.grad(loss(model(p, x[k]), y[k]).sum(), p)
            size = torch.sqrt(sum((u * u).flatten(1).sum(1) for u in g))
            scale = torch.clamp(a["clip"] / (size + 1e-12), max=1)
            with torch.no_grad():
                for i, u in enumerate(g):
                    b1, c1, b2, c2, root = (tall(c, u) for c in rule.T)
                    u = u * tall(scale, u) + tall(a["decay"], u) * p[i]
                    m[i], v[i] = b1 * m[i] + c1 * u, b2 * v[i] + c2 * u * u
                    p[i] = p[i] - tall(rate, u) * m[i] / torch.where(root > 0, v[i].sqrt() + 1e-8, torch.ones(()))
        with torch.no_grad():
            now = loss(model(p, xv), yv).double().numpy()
            live &= np.isfinite(now)
            dead = torch.tensor(~live)
            for w in p + m + v:
                w[dead] = 0
            a["lr"][dead] = 0
        curves[live, e] = np.minimum(now[live], cap)
    return curves


def cross(z, y):
    """Return the mean cross entropy of each configuration."""
    z = z.log_softmax(2)
    return -z.gather(2, y.reshape(1, -1, 1).expand(len(z), -1, 1)).mean((1, 2))


def side_by_side(grid, shape_axes, train, seconds):
    """Return the grid and rows. Calls train(shape, columns) for each shape, with the other axes as columns."""
    rest = [k for k in grid if k not in shape_axes]
    inner = list(itertools.product(*(grid[k] for k in rest)))
    rows = {}
    for shape in itertools.product(*(grid[k] for k in shape_axes)):
        curves = train(*shape, dict(zip(rest, zip(*inner))))
        for key, curve in zip(inner, curves):
            at = dict(zip(rest, key), **dict(zip(shape_axes, shape)))
            rows[tuple(at[k] for k in grid)] = seconds(*shape), curve
    return grid, rows


def settings(columns, **default):
    """Return the arguments of descend() for a grid, with defaults."""
    n = len(next(iter(columns.values())))
    usual = dict(rule=MOMENTUM, gain=1, decay=0, clip=math.inf, **default)
    return {**{k: [v] * n for k, v in usual.items()}, **columns}


def logistic(steps):
    """Logistic regression on the digits with five optimisers and three learning rate schedules."""
    import torch
    data = digits(0.2, 500)
    grid = dict(lr=powers(-3.3, 1, 10), rule=[SGD, MOMENTUM, ADAGRAD, RMSPROP, ADAM],
                decay=[0, 3e-3, 3e-2], fall=[0, 1, 2])

    def late(a, t):
        f = a["fall"]
        return torch.where(f == 0, 1., torch.where(f == 1, 1 / (1 + 30 * t) ** 0.5,
                                                   0.5 + 0.5 * math.cos(math.pi * t)))

    def train(columns):
        return descend(lambda p, x: x @ p[0] + p[1][:, None], [(64, 10), (10,)],
                       settings(columns), data, steps, 25, 23, cross, late)
    return side_by_side(grid, (), train, lambda: 1)


def rnn(steps):
    """Recurrent networks that read each digit row by row."""
    import torch
    data = digits(0.1, 500)
    grid = dict(hidden=[4, 10, 24], lr=powers(-3, 0.3, 8), rule=[MOMENTUM, ADAM], gain=[0.5, 1.2],
                clip=[0.1, 10], leak=[0.3, 1])

    def train(hidden, columns):
        leak = torch.tensor(columns["leak"])[:, None, None]

        def model(p, x):
            h = torch.zeros(1, len(x), hidden)
            for row in x.reshape(-1, 8, 8).transpose(0, 1):
                h = (1 - leak) * h + leak * torch.tanh(row @ p[0] + h @ p[1] + p[2][:, None])
            return h @ p[3] + p[4][:, None]
        return descend(model, [(8, hidden), (hidden, hidden), (hidden,), (hidden, 10), (10,)],
                       settings(columns), data, steps, 25, 23, cross)
    return side_by_side(grid, ("hidden",), train, lambda hidden: 1 + hidden / 24)


def cnn(steps):
    """Convolutional networks on the digits with many wrong labels; they over-fit late."""
    import torch
    data = digits(0.3, 400)
    grid = dict(filters=[3, 6, 12], width=[2, 3, 5], lr=powers(-3.2, 0, 8), rule=[MOMENTUM, ADAM],
                decay=[0, 2e-2], gain=[0.3, 1.4])

    def train(filters, width, columns):
        out = 9 - width

        def model(p, x):
            if x.dim() == 2:
                x = torch.nn.functional.unfold(x.reshape(-1, 1, 8, 8), width)
                x = x.transpose(1, 2).reshape(-1, width * width)
            h = torch.relu(x @ p[0] + p[1][:, None]).reshape(len(p[0]), -1, out, out, filters)
            h = h[:, :, :out // 2 * 2, :out // 2 * 2].reshape(
                len(p[0]), -1, out // 2, 2, out // 2, 2, filters).amax((3, 5))
            return h.flatten(2) @ p[2] + p[3][:, None]
        flat = (out // 2) ** 2 * filters
        return descend(model, [(width * width, filters), (filters,), (flat, 10), (10,)],
                       settings(columns), data, steps, 40, 23, cross)
    return side_by_side(grid, ("filters", "width"), train,
                        lambda filters, width: 0.5 + filters * width / 12)


def factors(steps):
    """Factorization of a matrix of which a sixth is known; a step is a pass. High ranks over-fit."""
    import torch
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(120, 3)), rng.normal(size=(90, 3))
    at = rng.permutation(120 * 90)[:3000]
    known = np.column_stack([at // 90, at % 90])
    y = ((u @ v.T).flat[at] / 3 ** 0.5 + 0.5 * rng.normal(size=len(at))).astype(np.float32)
    data = known[:1800], y[:1800], known[1800:], y[1800:]
    grid = dict(rank=[1, 2, 4, 8, 16], lr=powers(-2.3, 1.2, 8), rule=[MOMENTUM, ADAGRAD],
                decay=[0, 1e-3, 5e-3], gain=[0.3, 1, 3])

    def train(rank, columns):
        def model(p, x):
            return (p[0][:, x[:, 0]] * p[1][:, x[:, 1]]).sum(2)
        return descend(model, [(120, rank), (90, rank)], settings(columns), data, steps, 200, 10,
                       lambda z, y: ((z - y) ** 2).mean(1))
    return side_by_side(grid, ("rank",), train, lambda rank: 1 + rank / 8)


def policy(steps):
    """Policy gradients in a windy grid with a pit. The loss is the negative mean reward of 30 games, so it is noisy."""
    grid = dict(games=[3, 10, 30], lr=powers(-1.5, 1.5, 8), discount=[0.7, 0.9, 1.0],
                entropy=[0, 0.02, 0.1], baseline=[0, 1], batch_scale=[0, 1])

    def train(games, columns):
        c = {k: np.array(v, float)[:, None] for k, v in columns.items()}
        rng = np.random.default_rng(3)
        n, who = len(c["lr"]), np.arange(len(c["lr"]))[:, None]
        z, base, curves = np.zeros((n, 25, 4)), np.zeros((n, 20)), np.zeros((n, steps))
        move = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
        for e in range(steps):
            got = []
            for _ in range(30 // games):
                p = np.exp(z - z.max(2, keepdims=True))
                p /= p.sum(2, keepdims=True)
                at, over = np.zeros((n, games, 2), int), np.zeros((n, games), bool)
                states, acts, rewards, alive = [], [], [], []
                for _ in range(20):
                    s = at[..., 0] * 5 + at[..., 1]
                    a = (p[who, s].cumsum(2) < rng.random((n, games, 1))).sum(2).clip(0, 3)
                    way = np.where(rng.random((n, games)) < 0.15, rng.integers(0, 4, (n, games)), a)
                    at = (at + move[way] * ~over[..., None]).clip(0, 4)
                    end, pit = (at == 4).all(2), (at == 2).all(2)
                    states.append(s), acts.append(a), alive.append(~over)
                    rewards.append(~over * (end * 1.0 - pit * 1.0 - 0.02))
                    over = over | end | pit
                back, g = np.zeros((n, games)), np.zeros_like(z)
                for t in reversed(range(20)):
                    back = rewards[t] + c["discount"] * back
                    gain = (back - c["baseline"] * base[:, t:t + 1]) * alive[t]
                    base[:, t] += 0.1 * (gain.mean(1))
                    d = -p[who, states[t]] * gain[..., None]
                    np.put_along_axis(d, acts[t][..., None], np.take_along_axis(
                        d, acts[t][..., None], 2) + gain[..., None], 2)
                    np.add.at(g, (who, states[t]), d)
                spread = np.where(c["batch_scale"] > 0, 1e-3 + np.sqrt((g ** 2).sum((1, 2)))[:, None], games)
                log = np.log(p + 1e-12)
                slope = p * ((p * log).sum(2, keepdims=True) - log)
                z += c["lr"][..., None] * (g / spread[..., None] + c["entropy"][..., None] * slope)
                np.clip(z, -50, 50, z)
                got.append(np.sum(rewards, 0))
            curves[:, e] = -np.concatenate(got, 1).mean(1)
        return curves
    return side_by_side(grid, ("games",), train, lambda games: 1)


# Number of steps of each; doc/search-quality.md says which five are for tuning
KINDS = {f.__name__: (f, steps) for f, steps in (
    (boost, 64), (mixture, 40), (rnn, 40), (logistic, 81), (neighbours, 20),
    (forest, 50), (kernel, 27), (cnn, 30), (factors, 54), (policy, 81))}
