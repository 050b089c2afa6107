"""The formulas as the paper prints them, in plain loops over samples and pairs.

Slow on purpose. Everything is torch scalars, so autograd gives the oracle's gradient too.
"""

import numpy as np
import torch


def printed_coco(h, y, g, w=None, norm_weight=1.0):
    """Equation (coco-loss); a pair weighs w_i w_j, and the norms may have a weight of their own."""
    n = len(y)
    w = [1.0] * n if w is None else w
    pairs = norms = h.sum() * 0
    for i in range(n):
        for j in range(i + 1, n):
            pairs = pairs + w[i] * w[j] * (h[i] @ h[j] - g[y[i]][y[j]]) ** 2
    for i in range(n):
        norms = norms + w[i] ** 2 * (h[i] @ h[i] - g[y[i]][y[i]]) ** 2
    return 2 / (n * (n + 1)) * pairs + norm_weight / n * norms


def on_the_sphere(h):
    """Divide each row by its norm."""
    return torch.stack([row / (row @ row) ** 0.5 for row in h])


def printed_balanced_coco(h, y, g, priors):
    """Equation (balanced-coco-loss), which the paper leaves without normalisation."""
    n = len(y)
    total = h.sum() * 0
    for i in range(n):
        for j in range(i + 1, n):
            weight = (1 / priors[y[i]]) ** 0.5 * (1 / priors[y[j]]) ** 0.5
            total = total + weight * (h[i] @ h[j] - g[y[i]][y[j]]) ** 2
    for i in range(n):
        total = total + 1 / priors[y[i]] * (h[i] @ h[i] - g[y[i]][y[i]]) ** 2
    return total


def printed_dot_regression(h, y, prototypes, w=None):
    n = len(y)
    w = [1.0] * n if w is None else w
    return sum(w[i] * (h[i] @ prototypes[y[i]] - 1) ** 2 for i in range(n)) / (2 * n)


def printed_cross_entropy(h, y, weight, bias, w=None):
    n = len(y)
    w = [1.0] * n if w is None else w
    total = h.sum() * 0
    for i in range(n):
        scores = [weight[c] @ h[i] + bias[c] for c in range(len(bias))]
        total = total - w[i] * (scores[y[i]] - torch.log(sum(torch.exp(s) for s in scores)))
    return total / n


def value_and_grad(formula, h, *args):
    """Evaluate a printed formula and its gradient with respect to the embeddings."""
    h = h.detach().clone().requires_grad_()
    value = formula(h, *args)
    return value.detach(), torch.autograd.grad(value, h)[0]


def minimise(function, start, steps=300):
    """Follow a function of embeddings down to its minimum, as far as float64 goes."""
    h = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [h],
        max_iter=steps,
        tolerance_grad=1e-15,
        tolerance_change=0,
        history_size=50,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimiser.zero_grad()
        value = function(h)
        value.backward()
        return value

    optimiser.step(closure)
    return h.detach()


def printed_moments(embeddings, labels, weights=None):
    """Compute class means and covariances as the paper prints them, one sample at a time."""
    weights = np.ones(len(labels)) if weights is None else weights
    q = embeddings.shape[1]
    classes = sorted(set(labels))
    mass = {c: sum(w for w, y in zip(weights, labels, strict=True) if y == c) for c in classes}
    n = sum(mass.values())
    mean = {c: np.zeros(q) for c in classes}
    global_mean = np.zeros(q)
    for h, y, w in zip(embeddings, labels, weights, strict=True):
        mean[y] += w * h / mass[y]
        global_mean += w * h / n
    covariance = {c: np.zeros((q, q)) for c in classes}
    total, between = np.zeros((2, q, q))
    for h, y, w in zip(embeddings, labels, weights, strict=True):
        covariance[y] += w * np.outer(h - mean[y], h - mean[y]) / mass[y]
        total += w * np.outer(h - global_mean, h - global_mean) / n
    for c in classes:
        between += np.outer(mean[c] - global_mean, mean[c] - global_mean) / len(classes)
    return {
        "mass": mass,
        "means": np.array([mean[c] for c in classes]),
        "covariances": covariance,
        "global_mean": global_mean,
        "within": sum(mass[c] * covariance[c] for c in classes) / n,
        "between": between,
        "total": total,
    }
