"""What a fitted ensemble answers: every member has a head, and their answers are averaged."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cocoloss.estimators.ensemble import BLOCK_NUMBERS, Ensemble, normalized
from cocoloss.estimators.inputs import transform_inputs
from cocoloss.estimators.threads import threads_for


def _head_has(method: str) -> Callable[[Any], bool]:
    """Say whether the head of an estimator has a method; fitted heads know, names are looked up."""

    def check(estimator: Any) -> bool:
        if hasattr(estimator, "heads_"):
            getattr(estimator.heads_[0], method)
        elif estimator.head in ("ridge", "svm"):
            raise AttributeError(f"a linear head has no {method}")
        return True

    return check


def _head_scores(estimator: Any) -> bool:
    """Say whether the heads of an estimator have scores of any kind."""
    if hasattr(estimator, "heads_") and not hasattr(estimator.heads_[0], "predict_proba"):
        estimator.heads_[0].decision_function  # noqa: B018 - tells who lacks it
    return True


class MemberAverage(TransformerMixin):
    """Predictions, embeddings and outlier scores of an estimator with members."""

    classes_: NDArray[Any]
    heads_: list[Any]
    modules_: list[Any] | None
    parameters_: NDArray[np.float32]
    layer_sizes_: tuple[int, ...]
    normalize_: bool
    reads_outputs_: bool
    output: str
    device: str
    preprocessor_: Any
    _n_features_out: int
    _logits: bool

    def _outputs(self, inputs: NDArray[np.float32], *, hidden: bool = False) -> NDArray[Any]:
        """Return what each network gives, (K, n, q)."""
        if self.modules_ is not None:
            import torch  # noqa: PLC0415

            with torch.no_grad():
                x = torch.from_numpy(inputs).to(self.device)
                made = np.stack([module(x).cpu().numpy() for module in self.modules_])
            return normalized(made.astype(np.float64)) if self.normalize_ else made
        ensemble = Ensemble(self.layer_sizes_, self.parameters_, self.output, self.normalize_)
        return ensemble.embed(inputs, hidden=hidden)

    def _head_inputs(self, inputs: NDArray[np.float32]) -> NDArray[Any]:
        """Return what the heads look at, (K, n, q)."""
        return self._outputs(inputs) if self.reads_outputs_ else self._embeddings(inputs)

    def _embeddings(self, inputs: NDArray[np.float32]) -> NDArray[Any]:
        """Return the embedding of each member, (K, n, q)."""
        return self._outputs(inputs)

    def _embedding_width(self) -> int:
        return self.layer_sizes_[-1]

    def _inputs(self, X: Any) -> NDArray[np.float32]:
        check_is_fitted(self)
        return transform_inputs(self.preprocessor_, X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: the argmax of :meth:`predict_proba` if there is one.

        Heads without any scores vote.
        """
        features = self._head_inputs(self._inputs(X))
        if hasattr(self.heads_[0], "predict_proba"):
            best = self._mean("predict_proba", features).argmax(axis=1)
        elif hasattr(self.heads_[0], "decision_function"):
            mean = self._mean("decision_function", features)
            best = (mean > 0).astype(int) if mean.ndim == 1 else mean.argmax(axis=1)
        else:
            best = self._votes(features).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _votes(self, features: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many heads are for each class, (n, C); heads know classes by position."""
        votes = np.zeros((features.shape[1], len(self.classes_)), dtype=np.int64)
        rows = np.arange(len(votes))
        for head, h in zip(self.heads_, features, strict=True):
            votes[rows, head.predict(h)] += 1
        return votes

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C), averaged over the members."""
        return self._mean("predict_proba", self._head_inputs(self._inputs(X)))

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the log of :meth:`predict_proba`."""
        proba: NDArray[np.float64] = self.predict_proba(X)
        return np.log(np.maximum(proba, np.finfo(np.float64).tiny))

    @available_if(_head_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score per class, (n, C); for two classes one score, positive for the second."""
        features = self._head_inputs(self._inputs(X))
        if hasattr(self.heads_[0], "predict_proba"):
            floor = np.finfo(np.float64).tiny
            scores = np.log(np.maximum(self._mean("predict_proba", features), floor))
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        return self._mean("decision_function", features)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of each row.

        The embeddings of the members stand side by side, scaled so that inner products are the
        mean of theirs: ``transform(X) @ transform(Z).T`` is :meth:`kernel`.
        """
        embeddings = self._embeddings(self._inputs(X))
        K, n, q = embeddings.shape
        joined = embeddings.transpose(1, 0, 2).reshape(n, K * q) / np.sqrt(K)
        return np.asarray(joined, dtype=np.float32)

    def kernel(self, X: Any, Z: Any = None) -> NDArray[np.float64]:
        """Return the learnt kernel <h(x), h(z)> between the rows of X and of Z (X if None)."""
        left = self.transform(X).astype(np.float64)
        right = left if Z is None else self.transform(Z).astype(np.float64)
        return left @ right.T

    @available_if(_head_has("outlier_score"))  # type: ignore[untyped-decorator]
    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, averaged over the members; larger is stranger."""
        return self._mean("outlier_score", self._head_inputs(self._inputs(X)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Return a name for each column of :meth:`transform`."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{i}" for i in range(self._n_features_out)], dtype=object)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write an ONNX file: from the preprocessed matrix to classes, probabilities, embedding.

        The preprocessing stays here: what the graph takes as ``X`` is what
        ``preprocessor_.transform`` gives, which with ``preprocess=None`` is the table itself.
        Its outputs are ``label``, ``probabilities`` (``scores`` for a linear head; of two classes
        the one score with both signs) and ``embedding``, those of :meth:`predict`,
        :meth:`predict_proba` and :meth:`transform`.

        Parameters
        ----------
        path : path
            Such as ``model.onnx``.

        Raises
        ------
        CoCoError
            If onnx is not installed, or a part of the classifier has no place in the graph.
        """
        from cocoloss.estimators.onnx_export import write_onnx  # noqa: PLC0415 - seldom needed

        write_onnx(self, path)

    def _mean(self, method: str, features: NDArray[Any]) -> NDArray[np.float64]:
        """Return what a method of the heads says, averaged over the members."""
        pairs = zip(self.heads_, features, strict=True)
        width = features.shape[-1]
        with threads_for(BLOCK_NUMBERS * width):  # what a head multiplies in one block of rows
            mean: NDArray[np.float64] = np.mean([getattr(h, method)(f) for h, f in pairs], axis=0)
        return mean
