"""Answers as scikit-learn wants them: refused before a fit, and only those that the heads have."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cocoloss.estimators.answers import MemberAnswers
from cocoloss.estimators.ensemble import normalized


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


class MemberAverage(MemberAnswers, TransformerMixin):
    """Predictions, embeddings and outlier scores of an estimator with members."""

    device: str
    _logits: bool

    def _inputs(self, X: Any) -> NDArray[np.float32]:
        if not hasattr(self, "heads_"):  # asked first, since scikit-learn asks for all its tags
            check_is_fitted(self)
        return super()._inputs(X)

    def _outputs(self, inputs: NDArray[np.float32], *, hidden: bool = False) -> NDArray[Any]:
        """Return what each network gives; the hidden layers of a user's own module are its own."""
        if self.modules_ is None:
            return super()._outputs(inputs, hidden=hidden)
        import torch  # noqa: PLC0415

        with torch.no_grad():
            x = torch.from_numpy(inputs).to(self.device)
            made = np.stack([module(x).cpu().numpy() for module in self.modules_])
        return normalized(made.astype(np.float64)) if self.normalize_ else made

    def _embedding_width(self) -> int:
        return self.layer_sizes_[-1]

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C), averaged over the members."""
        return super().predict_proba(X)

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the log of :meth:`predict_proba`."""
        proba: NDArray[np.float64] = self.predict_proba(X)
        return np.log(np.maximum(proba, np.finfo(np.float64).tiny))

    @available_if(_head_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score per class, (n, C); for two classes one score, positive for the second."""
        return super().decision_function(X)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of each row.

        The embeddings of the members stand side by side, scaled so that inner products are the
        mean of theirs: ``transform(X) @ transform(Z).T`` is :meth:`kernel`.
        """
        return super().transform(X)  # here, so that scikit-learn's set_output finds it

    def kernel(self, X: Any, Z: Any = None) -> NDArray[np.float64]:
        """Return the learnt kernel <h(x), h(z)> between the rows of X and of Z (X if None)."""
        left = self.transform(X).astype(np.float64)
        right = left if Z is None else self.transform(Z).astype(np.float64)
        return left @ right.T

    @available_if(_head_has("outlier_score"))  # type: ignore[untyped-decorator]
    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, averaged over the members; larger is stranger."""
        return super().outlier_score(X)

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
