"""What an ensemble answers once it has learnt: every member has a head, and answers are averaged.

Neither learning nor scikit-learn here: a model file is answered from with numpy and pandas alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.estimators.ensemble import BLOCK_NUMBERS, Ensemble
from cocoloss.estimators.inputs import transform_inputs
from cocoloss.estimators.threads import threads_for


class MemberAnswers:
    """Classes, embeddings and outlier scores, by networks that are plain arrays."""

    classes_: NDArray[Any]
    heads_: list[Any]
    parameters_: NDArray[np.float32]
    layer_sizes_: tuple[int, ...]
    normalize_: bool
    linear_hidden_: bool = False
    reads_outputs_: bool
    output: str
    n_features_in_: int
    preprocessor_: Any
    modules_: list[Any] | None  # networks of a user's own, which no file holds
    _n_features_out: int

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

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C), averaged over the members."""
        return self._mean("predict_proba", self._head_inputs(self._inputs(X)))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score per class, (n, C); for two classes one score, positive for the second."""
        features = self._head_inputs(self._inputs(X))
        if hasattr(self.heads_[0], "predict_proba"):
            floor = np.finfo(np.float64).tiny
            scores = np.log(np.maximum(self._mean("predict_proba", features), floor))
            return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores
        return self._mean("decision_function", features)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of each row, those of the members side by side."""
        embeddings = self._embeddings(self._inputs(X))
        K, n, q = embeddings.shape
        joined = embeddings.transpose(1, 0, 2).reshape(n, K * q) / np.sqrt(K)
        return np.asarray(joined, dtype=np.float32)

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, averaged over the members; larger is stranger."""
        return self._mean("outlier_score", self._head_inputs(self._inputs(X)))

    def _inputs(self, X: Any) -> NDArray[np.float32]:
        """Return what the networks get of a table, (n, d)."""
        return transform_inputs(self.preprocessor_, X)

    def _outputs(self, inputs: NDArray[np.float32], *, hidden: bool = False) -> NDArray[Any]:
        """Return what each network gives, or its last hidden layer, (K, n, q)."""
        return self._ensemble().embed(inputs, hidden=hidden)

    def _ensemble(self) -> Ensemble:
        return Ensemble(
            self.layer_sizes_, self.parameters_, self.output, self.normalize_, self.linear_hidden_
        )

    def _embeddings(self, inputs: NDArray[np.float32]) -> NDArray[Any]:
        """Return the embedding of each member, (K, n, q)."""
        return self._outputs(inputs)

    def _head_inputs(self, inputs: NDArray[np.float32]) -> NDArray[Any]:
        """Return what the heads look at, (K, n, q)."""
        return self._outputs(inputs) if self.reads_outputs_ else self._embeddings(inputs)

    def _mean(self, method: str, features: NDArray[Any]) -> NDArray[np.float64]:
        """Return what a method of the heads says, averaged over the members."""
        pairs = zip(self.heads_, features, strict=True)
        width = features.shape[-1]
        with threads_for(BLOCK_NUMBERS * width):  # what a head multiplies in one block of rows
            mean: NDArray[np.float64] = np.mean([getattr(h, method)(f) for h, f in pairs], axis=0)
        return mean

    def _votes(self, features: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many heads are for each class, (n, C); heads know classes by position."""
        votes = np.zeros((features.shape[1], len(self.classes_)), dtype=np.int64)
        rows = np.arange(len(votes))
        for head, h in zip(self.heads_, features, strict=True):
            votes[rows, head.predict(h)] += 1
        return votes


class HiddenLayerAnswers(MemberAnswers):
    """Answers of networks that give logits: their embedding is the last hidden layer."""

    def _embeddings(self, inputs: NDArray[np.float32]) -> NDArray[Any]:
        return self._outputs(inputs, hidden=True)
