"""`AutoRegressor` keeps scikit-learn's conventions, with and without scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from rewritelog import AutoRegressor, UsageError, UsageTypeError


def samples(noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.uniform(1, 100, (80, 2))
    return X, (1e-6 + 2e-8 * X[:, 0] * X[:, 1]) * rng.normal(1, noise, 80)


def test_it_fits_predicts_and_scores() -> None:
    X, y = samples()
    regressor = AutoRegressor()
    assert regressor.fit(X, y) is regressor
    assert regressor.predict(X) == pytest.approx(y, rel=0.01)
    assert regressor.score(X, y) > 0.99
    assert regressor.n_features_in_ == 2
    again = pickle.loads(pickle.dumps(regressor))  # noqa: S301 - our own
    assert again.predict(X).tobytes() == regressor.predict(X).tobytes()


def test_the_error_of_one_that_is_not_fitted_can_be_pickled() -> None:
    """With scikit-learn it has a class that cannot be found by its name."""
    for module in ("", "sklearn.exceptions"):
        if module:
            pytest.importorskip(module)
        with pytest.raises(UsageError) as caught:
            AutoRegressor().predict([[1]])
        again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
        assert str(again) == str(caught.value)
        assert type(again).__mro__[1:] == type(caught.value).__mro__[1:]


def test_parameters_are_got_and_set() -> None:
    regressor = AutoRegressor(loss="squares")
    assert regressor.get_params() == {
        "weights": "relative",
        "loss": "squares",
        "exact_match": "never",
        "correction": "auto",
    }
    assert regressor.set_params(weights="uniform").weights == "uniform"
    assert repr(regressor).startswith("AutoRegressor(weights='uniform'")
    with pytest.raises(UsageTypeError, match="no parameter 'depth'"):
        regressor.set_params(depth=3)
    X, y = samples()
    with pytest.raises(UsageError, match="loss"):
        AutoRegressor(loss="cubes").fit(X, y)


def test_wrong_use_is_refused() -> None:
    X, y = samples()
    with pytest.raises(UsageError, match="not fitted"):
        AutoRegressor().predict(X)
    with pytest.raises(UsageError, match="y must have 80 values"):
        AutoRegressor().fit(X, y[:-1])
    with pytest.raises(UsageError, match="NaN"):
        AutoRegressor().fit(X * np.nan, y)
    with pytest.raises(UsageError, match="0 samples"):
        AutoRegressor().fit(X[:0], y[:0])
    with pytest.raises(UsageError, match="X has 25 columns; at most 20 can be fitted"):
        AutoRegressor().fit(np.ones((2, 25)), [1, 2])
    with pytest.raises(UsageError, match="2 columns, not 1"):
        AutoRegressor().fit(X, y).predict(X[:, :1])


@pytest.mark.long
def test_scikit_learn_clones_it_and_uses_it_in_pipelines_and_searches() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_regressor  # noqa: PLC0415
    from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import FunctionTransformer  # noqa: PLC0415

    X, y = samples(0.02)
    regressor = AutoRegressor(loss="squares")
    assert is_regressor(regressor)
    copied = clone(regressor)
    assert copied is not regressor
    assert copied.get_params() == regressor.get_params()
    assert cross_val_score(regressor, X, y, cv=3).min() > 0.95
    pipeline = make_pipeline(FunctionTransformer(lambda rows: rows[:, :2]), regressor)
    assert pipeline.fit(X, y).score(X, y) > 0.95
    search = GridSearchCV(regressor, {"loss": ["huber", "squares"]}, cv=2).fit(X, y)
    assert search.best_estimator_.predict(X).shape == (80,)


def test_a_pipeline_with_it_has_a_score_also_with_metadata_routing() -> None:
    """Each score of a cross-validation was NaN: pipelines then route the weights of samples."""
    sklearn = pytest.importorskip("sklearn")
    from sklearn.model_selection import cross_val_score  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415

    X, y = samples()
    with sklearn.config_context(enable_metadata_routing=True):
        for regressor in (AutoRegressor(), make_pipeline(AutoRegressor())):
            scores = cross_val_score(regressor, X, y, cv=2, error_score="raise")
            assert scores.min() > 0.95


def test_scikit_learn_is_told_that_it_takes_no_negative_times() -> None:
    """Its checks of estimators fit targets below zero otherwise."""
    pytest.importorskip("sklearn", "1.6")
    from sklearn.utils import get_tags  # noqa: PLC0415

    assert get_tags(AutoRegressor()).target_tags.positive_only


def test_sparse_tables_are_refused_in_words() -> None:
    X = csr_matrix([[1.0], [2], [4]])
    with pytest.raises(UsageTypeError, match="X is sparse, which is not supported: make it dense"):
        AutoRegressor().fit(X, [1, 2, 4])


def test_frames_are_remembered_by_their_columns() -> None:
    pd = pytest.importorskip("pandas")
    X, y = samples()
    frame = pd.DataFrame(X, columns=["atoms", "neighbours"])
    regressor = AutoRegressor().fit(frame, pd.Series(y))
    assert regressor.feature_names_in_.tolist() == ["atoms", "neighbours"]
    assert regressor.predict(frame).tobytes() == regressor.predict(X).tobytes()
    with pytest.raises(UsageError, match="columns of the fit in their order: atoms, neighbours"):
        regressor.predict(frame[["neighbours", "atoms"]])


def test_it_has_a_formula_and_refuses_transformed_targets() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"atoms": [1.0, 2, 4, 8]})
    regressor = AutoRegressor(correction="none").fit(frame, [2, 4, 8, 16])
    assert regressor.formula_ == "2*atoms"
    assert regressor.fit(frame.to_numpy(), [2, 4, 8, 16]).formula_ == "2*p1"
    ordered = pd.DataFrame({"p2": [1.0, 2, 4, 8], "p1": 1.0})
    assert regressor.fit(ordered, [2, 4, 8, 16]).formula_ == "2*p2"
    assert regressor.predict(ordered.to_numpy()).tolist() == [2, 4, 8, 16]  # not of p1
    for name in ("log", "max", "p3"):  # a bare ValueError was raised
        assert (
            regressor.fit(frame.rename(columns={"atoms": name}), [2, 4, 8, 16]).formula_ == "2*p1"
        )
    with pytest.raises(UsageError, match="not fitted"):
        _ = AutoRegressor().formula_
    with pytest.raises(UsageError, match=r"seconds, from 0 to 1e\+100, not -2"):
        regressor.fit(frame, [-2, -4, -8, -16])
