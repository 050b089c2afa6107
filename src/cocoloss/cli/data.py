"""``cocoloss data``: which tables there are, and bringing them here."""

from typing import Any

import click

from cocoloss.cli import messages, options

ADVICE = {"thousands": "`fit`, `evaluate` and `predict` have --decimal if it is otherwise"}
SOURCE = click.argument("source", default="openml-cc18")
NAMES = click.option(
    "--dataset", "names", multiple=True, metavar="NAME", help="Only these; all if left out."
)


@click.group()
def data() -> None:
    """List, fetch and check tables.

    A SOURCE is folder:PATH, file:PATH#TARGET, sklearn (what comes with scikit-learn), or
    openml-cc18, the 72 tables of the OpenML suite, which are fetched once and kept.
    """


@data.command("list")
@SOURCE
@options.json_option
def list_tables(source: str, as_json: bool) -> None:
    """Name the tables of a source."""
    from cocoloss._checks import counted  # noqa: PLC0415 - heavy
    from cocoloss.tables import OpenMLSource, load_source  # noqa: PLC0415

    tables = load_source(source)
    names = tables.names()
    elsewhere = set()
    if isinstance(tables, OpenMLSource):
        elsewhere = {name for name in names if not tables.is_cached(name)}
    if as_json:
        messages.print_json([{"name": name, "here": name not in elsewhere} for name in names])
        return
    # Beside the list, not in it: that may go into a pipe.
    click.echo(f"{source}, {counted(len(names), 'table')}:", err=True)
    for name in names:
        click.echo(f"{name}  (not here yet)" if name in elsewhere else name)


@data.command("get")
@SOURCE
@NAMES
def get_tables(source: str, names: tuple[str, ...]) -> None:
    """Fetch tables that are not here yet, into scikit-learn's data folder."""
    from cocoloss.tables import OpenMLSource, load_source  # noqa: PLC0415 - heavy

    tables = load_source(source)
    if not isinstance(tables, OpenMLSource):
        click.echo(f"{source} is here already")
        return
    wanted = names or tables.names()
    for i, name in enumerate(wanted, start=1):
        known = tables.is_cached(name)
        if not known:
            tables.load(name)
        click.echo(f"{i}/{len(wanted)}  {name}  {'was here' if known else tables.folder}")


@data.command("check")
@SOURCE
@NAMES
@options.TASK
@options.json_option
@click.pass_context
def check_all(
    ctx: click.Context, source: str, names: tuple[str, ...], task: str | None, as_json: bool
) -> None:
    """Read tables and say what they are; the exit code is 1 if one cannot be used."""
    from cocoloss._checks import counted  # noqa: PLC0415 - heavy
    from cocoloss.tables import check_tables, load_source  # noqa: PLC0415

    task = task or "classes"
    tables = load_source(source, task)
    checks = []
    for name in names or tables.names():
        with messages.notes_for_warnings(advice=ADVICE):  # beside the table that they are about
            (check,) = check_tables(tables, [name])
        checks.append(check._asdict())
        if check.n_left_out:
            messages.note(f"{name}: left out {counted(check.n_left_out, 'row')} without a target")
        if not as_json:
            click.echo(_line(check, task))
    if as_json:
        messages.print_json(checks)
    if not all(check["problem"] is None for check in checks):
        ctx.exit(1)


def _line(check: Any, task: str) -> str:
    if check.problem is not None:
        return f"{check.name}  {click.style('unusable: ', fg='red')}{check.problem}"
    return (
        f"{check.name}  {check.n_rows:,} rows, {check.n_features:,} columns, "
        f"{check.n_classes:,} {task if task != 'numbers' else 'different numbers'}, "
        f"{check.fingerprint[:12]}"
    )
