"""Runs MST or AIM of dpmm in a process of its own: reads a job from standard input, writes rows to a file and one line of JSON.

Started by ``benchmarks/peers/six_tables.py`` with the Python of dpmm's environment, so it imports nothing of this repository.

A job is ``{"model": "mst" or "aim", "bins": number or null, "megabytes": number, "table": path, "rows": path,
"columns": {name: [lower, upper] or [levels]}, "whole": [names], "real": [names], "epsilon": float, "delta": float,
"limit": CPU seconds, "seed": number}``.

Selection, noise and budgets are the package's. Its optimizer takes the same steps on plain arrays, some twenty times faster,
and stops when a hundred of them improve the log-likelihood by less than :data:`GAIN`, which no answer shows.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from dpmm.models.base.matrix import Identity
from dpmm.models.base.mbi.clique_vector import CliqueVector
from dpmm.models.base.mbi.factor import Factor
from dpmm.models.base.mbi.inference import FactoredInference
from dpmm.pipelines import AIMPipeline, MSTPipeline

BINNING = 0.1
"""The ε that both spend by default on finding bins; what they spend on rows is then less, so that the sum is as asked."""
GAIN = 0.01
MEMORY = 6 * 2**30


class Steps:
    """One junction tree as arrays: marginals of potentials, and the loss with its gradient."""

    def __init__(self, engine: FactoredInference) -> None:
        model = engine.model
        self.cliques = list(model.cliques)
        attributes = {clique: list(model.potentials[clique].domain.attrs) for clique in self.cliques}
        self.shapes = {clique: model.potentials[clique].values.shape for clique in self.cliques}
        self.log_total = np.log(model.total)

        def reduction(clique: Any, names: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
            places = [attributes[clique].index(name) for name in names]
            return _reduction(places, len(attributes[clique]))

        self.messages = []
        for i, j in model.message_order:
            shared = [name for name in attributes[i] if name in attributes[j]]
            self.messages.append((i, j, reduction(i, shared), reduction(j, shared)))
        self.answers = [
            (clique, self._answer(query), y, 1.0 / noise, reduction(clique, names))
            for clique in self.cliques
            for query, y, noise, names in engine.groups[clique]
        ]

    @staticmethod
    def _answer(query: Any) -> Any:
        """The diagonal of a query that has nothing else, None for the identity, else the matrix."""
        if isinstance(query, Identity):
            return None
        sparse = query.tocoo()
        if sparse.shape[0] != sparse.shape[1] or not (sparse.row == sparse.col).all():
            return query.tocsr()
        diagonal = np.asarray(query.diagonal())
        return None if (diagonal == 1.0).all() else diagonal

    def marginals(self, potentials: dict[Any, Any]) -> dict[Any, Any]:
        """By messages, as ``GraphicalModel.belief_propagation``."""
        beliefs = {clique: values.copy() for clique, values in potentials.items()}
        sent: dict[Any, Any] = {}
        for i, j, from_i, from_j in self.messages:
            source = beliefs[i] - _spread(sent[j, i], from_i, self.shapes[i]) if (j, i) in sent else beliefs[i]
            largest = source.max(axis=from_i[0], keepdims=True)
            summed = np.log(np.exp(source - largest).sum(axis=from_i[0])) + largest.squeeze(axis=from_i[0])
            sent[i, j] = summed.transpose(from_i[1])
            beliefs[j] += _spread(sent[i, j], from_j, self.shapes[j])
        first = beliefs[self.cliques[0]]
        largest = first.max()
        constant = self.log_total - largest - np.log(np.exp(first - largest).sum())
        return {clique: np.exp(values + constant) for clique, values in beliefs.items()}

    def loss(self, marginals: dict[Any, Any]) -> tuple[float, dict[Any, Any]]:
        """As ``FactoredInference._marginal_loss``."""
        total, gradient = 0.0, {clique: np.zeros(shape) for clique, shape in self.shapes.items()}
        for clique, query, y, weight, reduction in self.answers:
            found = marginals[clique].sum(axis=reduction[0]).transpose(reduction[1])
            flat = found.ravel()
            asked = flat if query is None else query * flat if query.ndim == 1 else query @ flat
            difference = weight * (asked - y)
            total += 0.5 * float(difference @ difference)
            back = weight * (
                difference if query is None else query * difference if query.ndim == 1 else query.T @ difference
            )
            gradient[clique] += _spread(back.reshape(found.shape), reduction, self.shapes[clique])
        return total, gradient


def _reduction(places: list[int], dimensions: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes that are summed over, and the order of those that are left."""
    kept = sorted(places)
    return tuple(k for k in range(dimensions) if k not in places), tuple(kept.index(place) for place in places)


def _spread(values: Any, reduction: tuple[tuple[int, ...], tuple[int, ...]], shape: tuple[int, ...]) -> Any:
    """The inverse: with an axis of length 1 for each that was summed over."""
    inner = values.transpose(np.argsort(reduction[1])) if values.ndim else values
    return inner.reshape([1 if k in reduction[0] else length for k, length in enumerate(shape)])


def mirror_descent(engine: FactoredInference, measurements: Any, total: Any = None, **_: Any) -> float:
    """The package's steps, with its line search; see the module."""
    engine._setup(measurements, total)
    model = engine.model
    steps = Steps(engine)
    theta = {clique: model.potentials[clique].values.astype(float) for clique in steps.cliques}
    mu = steps.marginals(theta)
    loss, gradient = steps.loss(mu)
    alpha, before = 1.0 / model.total**2, np.inf
    for step in range(engine.iters if loss else 0):
        if step % 100 == 0:
            if step and before - loss < GAIN:
                break
            before = loss
        alpha *= 2.0
        for _ in range(25):
            tried = {clique: theta[clique] - alpha * gradient[clique] for clique in steps.cliques}
            new = steps.marginals(tried)
            found = steps.loss(new)
            expected = sum(float(np.vdot(gradient[clique], mu[clique] - new[clique])) for clique in steps.cliques)
            if loss - found[0] >= 0.5 * alpha * expected:
                break
            alpha *= 0.5
        theta, mu, (loss, gradient) = tried, new, found
    for name, arrays in (("potentials", theta), ("marginals", mu)):
        setattr(model, name, CliqueVector({c: Factor(model.potentials[c].domain, arrays[c]) for c in steps.cliques}))
    return loss


def main() -> None:
    """Fit the model of the job and draw as many rows as the table has."""
    job = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (job["limit"], job["limit"] + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    FactoredInference.mirror_descent = mirror_descent
    kinds = dict.fromkeys(job["columns"], str) | dict.fromkeys(job["whole"], int) | dict.fromkeys(job["real"], float)
    table = pd.read_csv(job["table"], dtype=kinds)
    domain = {
        name: {"categories": public} if kinds[name] is str else {"lower": public[0], "upper": public[1]}
        for name, public in job["columns"].items()
    }
    options = dict(delta=job["delta"], n_jobs=1)
    if job["model"] == "aim":
        options["max_model_size"] = job["megabytes"]
    if job["bins"] is None:
        options |= dict(epsilon=job["epsilon"] - BINNING, proc_epsilon=BINNING)
    else:
        options |= dict(epsilon=job["epsilon"], proc_epsilon=None, n_bins=job["bins"])
    start = time.process_time()
    pipeline = {"mst": MSTPipeline, "aim": AIMPipeline}[job["model"]](**options)
    pipeline.fit(table, domain=domain, random_state=job["seed"])
    rows = pipeline.generate(n_records=len(table), random_state=job["seed"])
    seconds = time.process_time() - start
    rows.to_csv(job["rows"], index=False)
    # Unlike getrusage, whose peak is the parent's if that was larger.
    peak = next(line for line in Path("/proc/self/status").read_text("ascii").splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "megabytes": int(peak.split()[1]) / 1024.0}))


if __name__ == "__main__":
    main()
