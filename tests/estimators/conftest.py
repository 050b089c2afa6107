"""Tables and fitted classifiers that many tests look at, made once."""

import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split


@pytest.fixture(scope="session")
def wine():
    return train_test_split(*load_wine(return_X_y=True), random_state=0, test_size=0.3)


@pytest.fixture(scope="session")
def fitted(wine):
    """A function that returns a classifier fitted to the wines; who changes it makes one anew."""
    X, _, y, _ = wine
    made = {}

    def fit(make, **arguments):
        arguments = {"max_iter": 30, "n_members": 2, "random_state": 0} | arguments
        key = make, str(arguments)
        if key not in made:
            made[key] = make(**arguments).fit(X, y)
        return made[key]

    return fit
