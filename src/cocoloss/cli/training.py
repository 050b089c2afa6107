"""What is trained, and how: options that several commands share."""

import functools
from typing import Any, NamedTuple, cast

import click

from cocoloss.cli.options import Command, combined

MODELS = {  # option -> class of cocoloss.estimators
    "coco": "CoCoClassifier",
    "dr": "DotRegressionClassifier",
    "ce": "CrossEntropyClassifier",
}
EPOCHS = click.option(
    "--epochs", type=click.IntRange(min=1), help="At most so many; 100 if left out."
)
PRIORS = click.option(
    "--priors",
    type=click.Choice(["uniform", "empirical"]),
    default="uniform",
    show_default=True,
    help="Count all classes alike, or as often as they occur.",
)
SEED = click.option(
    "--seed", default=0, show_default=True, help="The same seed gives the same result."
)


class Training(NamedTuple):
    """What to train; what the user leaves out, the classifier decides."""

    model: str = "coco"
    epochs: int | None = None
    members: int | None = None
    priors: str = "uniform"
    seed: int = 0

    def classifier(self, **options: Any) -> Any:
        """Return the classifier, with further arguments unless they are None."""
        from cocoloss import estimators  # noqa: PLC0415 - heavy

        given = {"max_iter": self.epochs, "n_members": self.members, **options}
        return getattr(estimators, MODELS[self.model])(
            priors=self.priors,
            random_state=self.seed,
            **{name: value for name, value in given.items() if value is not None},
        )


def training_options(command: Command) -> Command:
    """Add what to train, which the command gets as the one argument ``training``."""

    @functools.wraps(command)
    def wrapper(
        model: str,
        epochs: int | None,
        members: int | None,
        priors: str,
        seed: int,
        **rest: Any,
    ) -> Any:
        return command(training=Training(model, epochs, members, priors, seed), **rest)

    added = (
        SEED,
        PRIORS,
        click.option(
            "--members", type=click.IntRange(min=1), help="Networks to average; 6 if left out."
        ),
        EPOCHS,
        click.option(
            "--model",
            type=click.Choice(list(MODELS)),
            default="coco",
            show_default=True,
            help="CoCo, dot regression or cross-entropy.",
        ),
    )
    return combined(cast("Command", wrapper), added)
