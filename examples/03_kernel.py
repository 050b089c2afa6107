"""A learnt kernel in a support vector machine, beside the usual Gaussian one.

    python examples/03_kernel.py            (about ten seconds)

CoCo's inner products <h(x), h(z)> are a kernel: 1 within a class, -1/(C-1) between classes, as
far as the data allow. Any kernel method takes them.
"""

from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cocoloss import CoCoClassifier

DATA = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}


def main() -> None:
    """Fit both machines on each data set and print their accuracy on held-out rows."""
    print(f"{'':14}{'learnt kernel':>15}{'Gaussian kernel':>17}{'CoCo itself':>13}")
    for name, load in DATA.items():
        X_train, X_test, y_train, y_test = train_test_split(
            *load(return_X_y=True), test_size=0.3, random_state=0
        )
        coco = CoCoClassifier(max_iter=50, random_state=0).fit(X_train, y_train)
        learnt = SVC(kernel="precomputed").fit(coco.kernel(X_train), y_train)
        usual = make_pipeline(StandardScaler(), SVC()).fit(X_train, y_train)
        print(
            f"{name:14}"
            f"{learnt.score(coco.kernel(X_test, X_train), y_test):15.3f}"
            f"{usual.score(X_test, y_test):17.3f}"
            f"{coco.score(X_test, y_test):13.3f}"
        )


if __name__ == "__main__":
    main()
