"""SPEC and the options that change it, which ``cocoloss bench run`` and ``plan`` share."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from cocoloss.cli import options

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec


experiments_option = click.option(
    "--experiments",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where the file of an experiment of your own lies, if neither beside the spec nor in the "
    "current folder; repeatable.",
)


class SpecFile(NamedTuple):
    """A spec, what the user changes of it, and where its results are kept."""

    spec: Path
    store: str | None
    models: tuple[str, ...]
    data: str | None
    datasets: tuple[str, ...]
    time_limit: str | None
    experiments: tuple[Path, ...] = ()

    def read(self) -> "Spec":
        """Return the spec with the changes."""
        from cocoloss.benchmark.runner import find_own_models_here  # noqa: PLC0415
        from cocoloss.benchmark.spec import check_seconds, load_spec  # noqa: PLC0415

        own = {}
        for text in self.models:
            name, equals, place = text.partition("=")
            if not equals or not name:
                raise click.UsageError(f"--model takes NAME=MODULE:FACTORY, not {text!r}")
            own[name] = place
        limit = self.time_limit
        seconds = None if limit is None else check_seconds(limit, "--time-limit")
        find_own_models_here()
        return load_spec(self.spec, experiments=self.experiments).changed(
            datasets=self.datasets, own=own, seconds_per_task=seconds, source=self.data
        )

    def where(self, spec: "Spec") -> str:
        """Return where the results are kept."""
        file = spec.name.replace("/", "-").replace("\\", "-")  # which would name a folder
        return self.store or f"{file}.sqlite"


spec_file = options.packed(  # SPEC, and what changes it
    "asked",
    SpecFile,
    [
        click.argument("spec", type=click.Path(path_type=Path)),
        click.option(
            "--store",
            metavar="FILE|URL",
            help="Where results are kept: a SQLite file, or postgresql://user@host/name. "
            "NAME.sqlite in the current folder, after the spec's name, if left out.",
        ),
        click.option(
            "--model",
            "models",
            multiple=True,
            metavar="NAME=MODULE:FACTORY",
            help="A model of your own, such as mine=my_models:make_forest; repeatable.",
        ),
        click.option(
            "--data",
            metavar="SOURCE",
            help="Read the tables from here instead: folder:PATH, file:PATH#TARGET, sklearn or "
            "openml-cc18.",
        ),
        click.option(
            "--dataset", "datasets", multiple=True, metavar="NAME", help="Only this; repeatable."
        ),
        click.option("--time-limit", metavar="TIME", help="For each task, such as 90, 15m or 2h."),
        experiments_option,
    ],
)
