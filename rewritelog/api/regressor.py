"""A regressor with scikit-learn's conventions for one event; scikit-learn itself is not needed."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rewritelog.arrays import Floats, to_column, to_seconds, to_table
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.models.base import EventTimings
from rewritelog.models.expressions import MAX_PARAMETERS, usable_names
from rewritelog.models.fit_report import formula_text
from rewritelog.models.fitted import Fitted
from rewritelog.models.metrics import r_squared
from rewritelog.models.registry import load_model
from rewritelog.text import parameter_names

EVENT = "event"


class NotFittedError(UsageError, AttributeError):
    """A regressor is asked for predictions before it is fitted, as in scikit-learn."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what makes the error, which may have a class of its own."""
        return not_fitted, self.args


def not_fitted(message: str) -> NotFittedError:
    """Return the error, which is also scikit-learn's own if that is loaded."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    if theirs is None:
        return NotFittedError(message)
    error_type: type[NotFittedError] = type("NotFittedError", (NotFittedError, theirs), {})
    return error_type(message)


@dataclass(kw_only=True, eq=False)
class AutoRegressor:
    """Fit seconds to parameters as `fit` does, with scikit-learn's conventions.

    Parameters are those of the automatic model: `weights` ("relative" or "uniform"), `loss`
    ("huber" or "squares"), `exact_match` ("auto", "always" or "never", the default here) and
    `correction` ("auto" or "none"). It can be cloned and used in pipelines and cross-validation.
    Targets are seconds; do not transform them, since errors count relative to them.

    >>> regressor = rewritelog.AutoRegressor(loss="squares").fit([[1], [2], [4], [8]], [2, 4, 8, 16])
    >>> regressor.predict([[3]])
    array([6.])
    >>> regressor.formula_
    '2*p1'
    """  # noqa: E501 - an example in one line

    _estimator_type = "regressor"

    weights: str = "relative"
    loss: str = "huber"
    exact_match: str = "never"
    correction: str = "auto"

    def fit(self, X: ArrayLike, y: ArrayLike) -> AutoRegressor:
        """Fit to a table of parameters and the seconds of each row; return the regressor.

        X has shape (samples, parameters), y has shape (samples,). Raise `UsageError` for other
        shapes, more than 20 parameters, numbers that are not finite, negative times, no samples or
        invalid parameters of the regressor, and `UsageTypeError` for sparse tables.
        """
        names = _column_names(X)
        params = to_table(X, None)
        seconds = to_seconds(y, len(params))
        for what, values in (("X", params), ("y", seconds)):
            if not np.isfinite(values).all():
                raise UsageError(f"{what} contains NaN or infinity")
        if not len(params):
            raise UsageError("X has 0 samples; at least 1 is needed")
        if params.shape[1] > MAX_PARAMETERS:
            columns = f"{params.shape[1]} columns"
            raise UsageError(f"X has {columns}; at most {MAX_PARAMETERS} can be fitted")
        model = load_model("auto", self.get_params())
        self.model_ = Fitted.of(model, "auto", [EventTimings(EVENT, params, seconds)])
        self.n_features_in_ = params.shape[1]
        vars(self).pop("feature_names_in_", None)
        if names:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Return the seconds of each row, at least 0, shape (rows,).

        Raise `UsageError` before `fit`, and for a table with other columns than that of the fit.
        """
        if not hasattr(self, "model_"):
            raise not_fitted("this AutoRegressor is not fitted: call fit first")
        known, names = list(getattr(self, "feature_names_in_", [])), _column_names(X)
        if known and names and known != names:
            raise UsageError(
                f"X must have the columns of the fit in their order: {', '.join(known)}, "
                f"not {', '.join(names)}"
            )
        params = to_table(X, self.n_features_in_)
        numbered = parameter_names(len(known))
        if known and not names and {*known} == {*numbered}:  # which the fit has in order
            params = params[:, [known.index(name) for name in numbered]]
        return self.model_.prediction(EVENT, params).seconds

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return R² of the predictions; NaN if y does not vary. Raise as `predict` does."""
        predicted = self.predict(X)
        explained = r_squared(predicted, to_column(y, len(predicted)))
        return float("nan") if explained is None else explained

    @property
    def formula_(self) -> str:
        """The seconds as a formula of the columns of X, without the correction, if there is one."""
        if not hasattr(self, "model_"):
            raise not_fitted("this AutoRegressor is not fitted: call fit first")
        names = usable_names(getattr(self, "feature_names_in_", ()))
        return formula_text(self.model_.fits[EVENT, self.n_features_in_].named(names))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: object) -> AutoRegressor:
        """Set parameters by name; return the regressor. Raise `UsageTypeError` for other names."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                names = ", ".join(known)
                raise UsageTypeError(f"AutoRegressor has no parameter {name!r}; it has {names}")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        """Return the tags of a regressor of times; only scikit-learn calls this."""
        tags = _regressor_of_scikit_learn().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def get_metadata_routing(self) -> Any:
        """Return the requests of scikit-learn's own regressors; only scikit-learn calls this."""
        return _regressor_of_scikit_learn().get_metadata_routing()


def _regressor_of_scikit_learn() -> Any:
    from sklearn import base  # noqa: PLC0415 - only scikit-learn's calls need it

    return type("AutoRegressor", (base.RegressorMixin, base.BaseEstimator), {})()


def _column_names(X: ArrayLike) -> list[str]:
    """Return the names of the columns of a DataFrame, if they are texts, as scikit-learn does."""
    names = list(getattr(X, "columns", ()))
    return names if all(isinstance(name, str) for name in names) else []
