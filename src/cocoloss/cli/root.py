"""The command itself: which commands there are, and how each of them ends.

A command's module is imported when it is asked for, and imports what is heavy when it runs: the
help is there at once.
"""

import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

import cocoloss
from cocoloss.exceptions import CoCoError

# name -> (module, what it does); the names of the functions are those of the commands
COMMANDS = {
    "describe": ("cocoloss.cli.describe", "Show how the columns of a table will be read."),
    "fit": ("cocoloss.cli.fit", "Learn a model from a table and save it."),
    "predict": ("cocoloss.cli.predict", "Predict the class, level or number of each row."),
    "embed": ("cocoloss.cli.predict", "Write the embedding of each row of a table."),
    "evaluate": ("cocoloss.cli.evaluate", "Cross-validate models on a table."),
    "report": ("cocoloss.cli.report", "Show how a table is learnt, in one HTML page."),
    "compare": ("cocoloss.cli.compare", "Rank models by a table of scores, with tests."),
    "data": ("cocoloss.cli.data", "List, fetch and check tables."),
    "bench": ("cocoloss.cli.bench", "Many models on many tables, resumable."),
    "demo": ("cocoloss.cli.evaluate", "Compare models on three data sets and write a report."),
}
STANDARD_INPUT = re.compile(r"\S*cocoloss-\w+.standard input")  # where options.TablePath keeps it
TRACEBACK = "COCOLOSS_TRACEBACK"
# A group without a command, whose message is its help; click 8.1 prints that by itself.
NO_COMMAND: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
INTERRUPTED = 130  # what shells expect after Ctrl-C
TERMINATED = 143  # and after SIGTERM


class OneLineErrors(click.Group):
    """A group that knows its commands by name, and turns every refusal into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of a working day."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, importing its module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Say which command was meant if there is none of the name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from cocoloss._checks import did_you_mean  # noqa: PLC0415 - after a slip only

            hint = did_you_mean(args[0], COMMANDS) or f"; there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command; whatever it refuses is one line on standard error."""
        killed: list[int] = []  # what `ctx.obj` is: whether it was SIGTERM that stopped a command
        try:
            with _stopped_by_sigterm(killed):
                code = super().main(*args, **options | {"standalone_mode": False, "obj": killed})
        except NO_COMMAND as error:
            click.echo(error.format_message())
            code = 0
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx else "cocoloss"
            _end(f"{error.format_message()} (see {path} --help)", error.exit_code)
        except click.ClickException as error:
            _end(error.format_message(), error.exit_code)
        except CoCoError as error:
            _end(str(error), 1)
        except (KeyboardInterrupt, click.Abort):
            code = TERMINATED if killed else INTERRUPTED
            _end("stopped; nothing was left half-written", code, label="")
        except MemoryError:
            _end("not enough memory; take fewer rows, or a machine with more", 1)
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            _end(f"{type(error).__name__}: {error} ({TRACEBACK}=1 shows where it came from)", 1)
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _stopped_by_sigterm(killed: list[int]) -> Iterator[None]:
    """Let SIGTERM stop a command as Ctrl-C does, and remember that it came."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield  # whoever runs us has other plans
        return

    def stop(number: int, _frame: object) -> NoReturn:
        killed.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(message: str, code: int, label: str = "error: ") -> NoReturn:
    line = STANDARD_INPUT.sub("standard input", " ".join(message.split()))
    click.echo(click.style(label, fg="red", bold=True) + line, err=True)
    sys.exit(code)


@click.group(
    cls=OneLineErrors,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(cocoloss.__version__, prog_name="cocoloss")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Learn classes, ordered levels or numbers from a table, and predict them.

    Tables are CSV, TSV, Parquet, ARFF or Excel files, also gzipped, or - for standard input;
    separator and encoding are found.

    \b
    cocoloss fit customers.csv --target churned --out churn.coco
    cocoloss predict churn.coco new.csv --out predictions.csv
    cocoloss evaluate customers.csv --target churned
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
