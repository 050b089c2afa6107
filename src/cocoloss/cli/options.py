"""Arguments and options that several commands share; those that belong together come as one."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]
MODEL_SUFFIX = ".coco"
MODELS = {  # option -> class of cocoloss.estimators
    "coco": "CoCoClassifier",
    "dr": "DotRegressionClassifier",
    "ce": "CrossEntropyClassifier",
}


def packed(
    argument: str, make: Callable[..., Any], options: Sequence[Decorator]
) -> Callable[[Command], Command]:
    """Return what adds options to a command, which gets them as one argument.

    Parameters
    ----------
    argument : str
        Its name.
    make : callable
        Makes it; options that are not among its parameters go to the command as they are.
    options : sequence of decorators
        From first to last in the help.
    """
    names = list(inspect.signature(make).parameters)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**given: Any) -> Any:
            made = make(**{name: given.pop(name) for name in names})
            return command(**{argument: made}, **given)

        decorated: Any = wrapper
        for option in reversed(options):
            decorated = option(decorated)
        return cast("Command", decorated)

    return decorate


def _how_to_read(
    separator: str | None, encoding: str | None, decimal: str | None, header: bool | None
) -> dict[str, Any]:
    return {
        "separator": "\t" if separator in {"tab", "\\t"} else separator,
        "encoding": encoding,
        "header": "auto" if header is None else header,
        "decimal": decimal,
    }


def _with_gaps(how: dict[str, Any], missing: tuple[str, ...]) -> dict[str, Any]:
    return how | {"missing": ["", *missing] if missing else None}


table_file = packed(  # FILE, and how to read it
    "how",
    _how_to_read,
    [
        click.argument("file", type=click.Path(path_type=Path)),
        click.option("--separator", help="Between the columns of a CSV; found if left out."),
        click.option("--encoding", help="Such as utf-8 or latin-1; found if left out."),
        click.option(
            "--decimal", type=click.Choice([".", ","]), help="Decimal mark; found if left out."
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="Whether the first line has the names, where it looks like a row.",
        ),
    ],
)
table_with_gaps = packed(  # FILE, how to read it, and which words are gaps
    "how",
    _with_gaps,
    [
        table_file,
        click.option(
            "--missing",
            multiple=True,
            metavar="WORD",
            help="What means a gap, beside empty cells; repeatable. NA, None, ? and the like if "
            "left out.",
        ),
    ],
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
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


@dataclass(frozen=True)
class Training:
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


training_options = packed(
    "training",
    Training,
    [
        click.option(
            "--model",
            type=click.Choice(list(MODELS)),
            default="coco",
            show_default=True,
            help="CoCo, dot regression or cross-entropy.",
        ),
        EPOCHS,
        click.option(
            "--members", type=click.IntRange(min=1), help="Networks to average; 6 if left out."
        ),
        PRIORS,
        SEED,
    ],
)


def out_option(
    name: str,
    *,
    required: bool = False,
    help: str,  # noqa: A002 - click's word
) -> Callable[[Command], Command]:
    """Return what adds --out."""
    place = click.Path(path_type=Path, readable=False)  # write_whole says what is wrong with it
    return click.option("--out", required=required, type=place, metavar=name, help=help)


def check_out(
    out: Path, inputs: Sequence[Path], *, suffixes: Sequence[str] = (), never: Sequence[str] = ()
) -> None:
    """Refuse, before the work, a place that cannot be written, or that holds what is being read.

    Parameters
    ----------
    out : Path
        Where the result goes.
    inputs : sequence of Path
        What is read.
    suffixes, never : sequences of str
        How the name may end, if that matters, and how it may not: a model is no table.
    """
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415
    from cocoloss.files import check_can_write  # noqa: PLC0415

    check_can_write(out)
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise CoCoError(f"--out is {path}, which is being read; choose another name")
    if suffixes and out.suffix.lower() not in suffixes:
        raise CoCoError(f"{out} must end in {' or '.join(suffixes)}")
    if out.suffix.lower() in never:
        raise CoCoError(f"{out} is the name of a table; call a model something like model.coco")


def check_is_no_model(file: Path) -> None:
    """Refuse a model that is given in place of a table."""
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415

    if file.suffix == MODEL_SUFFIX and file.is_file():
        raise CoCoError(
            f"{file} is a model, not a table; in `predict` and `embed` the model is first"
        )
