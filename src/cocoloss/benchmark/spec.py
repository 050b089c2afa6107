"""A benchmark as a file: what is run on which tables, with every choice that changes a number.

The file is TOML. Each section is a frozen dataclass below, and each key has one line in the table
of checks; what the file says that no check knows is refused, with the key that was meant.
"""

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any

from cocoloss._checks import check_integer, check_option, did_you_mean
from cocoloss.benchmark.tasks import digest_of, properties_of
from cocoloss.exceptions import CoCoError

GIVEN = "(fold)"  # the column that a file of folds becomes
SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20} | {
    "gib": 2**30
}
STEPS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*")


def check_seconds(value: object, name: str) -> float:
    """Return a duration in seconds.

    >>> check_seconds("15m", "--time-limit")
    900.0
    """
    return _amount(value, name, SECONDS, "seconds, such as 90, '15m' or '2h'")


def check_bytes(value: object, name: str) -> int:
    """Return an amount of memory in bytes.

    >>> check_bytes("4 GB", "limits.memory_per_task")
    4000000000
    """
    return int(_amount(value, name, BYTES, "bytes, such as 500000000 or '4 GB'"))


def _amount(value: object, name: str, units: dict[str, int], expected: str) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        if 0 <= float(value) < math.inf:
            return float(value)
    elif isinstance(value, str):
        match = AMOUNT.fullmatch(value)
        if match and match[2].lower() in units:
            return float(match[1]) * units[match[2].lower()]
    raise CoCoError(f"{name} must be a number of {expected}, not {value!r}")


def readable_time(seconds: float) -> str:
    """Write a duration with the two units that matter.

    >>> readable_time(0.25), readable_time(75), readable_time(7200), readable_time(200_000)
    ('0.25 s', '1 min 15 s', '2 h', '2 d 7 h')
    """
    if seconds < 0.01:
        return "0 s"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    seconds = round(seconds)
    for size, name, part, smaller in STEPS:
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"


Check = Callable[[Any, str], Any]


def whole(minimum: int) -> Check:
    """Return what checks a whole number of at least ``minimum``."""
    return lambda value, name: check_integer(value, name, minimum=minimum)


def text(value: Any, name: str) -> str:
    """Check a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise CoCoError(f"{name} must be a text, not {value!r}")
    return value


def kind_of_experiment(value: Any, name: str) -> str:
    """Check what an experiment can be called: ``kind`` or ``package.module``."""
    if not isinstance(value, str) or not all(part.isidentifier() for part in value.split(".")):
        raise CoCoError(
            f"{name} must name an experiment, such as 'accuracy' or 'package.module', not {value!r}"
        )
    return value


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Check a list of texts, none of them twice."""
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
        raise CoCoError(f"{name} must be a list of texts, not {value!r}")
    twice = sorted({v for v in value if list(value).count(v) > 1})
    if twice:
        raise CoCoError(f"{name} has {twice[0]!r} twice")
    return tuple(value)


def places(value: Any, name: str) -> dict[str, str]:
    """Check names of models and where each is made, ``package.module:factory``."""
    if not isinstance(value, Mapping):
        raise CoCoError(f"{name} must be a table of name = 'package.module:factory', not {value!r}")
    for model, place in value.items():
        module, colon, factory = place.partition(":") if isinstance(place, str) else ("", "", "")
        good = all(part.isidentifier() for part in [*module.split("."), *factory.split(".")])
        if not colon or not good:
            raise CoCoError(f"{name}.{model} must be 'package.module:factory', not {place!r}")
    return dict(value)


def truth(value: Any, name: str) -> bool:
    """Check a truth value."""
    if not isinstance(value, bool):
        raise CoCoError(f"{name} must be true or false, not {value!r}")
    return value


def numbers_of_trials(value: Any, name: str) -> dict[str, int]:
    """Check numbers of trials by model."""
    if not isinstance(value, Mapping):
        raise CoCoError(f"{name} must be a table of model = number, not {value!r}")
    return {model: check_integer(n, f"{name}.{model}", minimum=0) for model, n in value.items()}


def refuse_unknown(given: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
    """Refuse a key that is not known, with the one that was meant."""
    for key in given:
        if key not in known:
            raise CoCoError(f"unknown key {prefix}{key}{what_there_is(str(key), known)}")


def what_there_is(name: str, known: Collection[str]) -> str:
    """Return the name that was meant, as a question, or else all that there are.

    >>> what_there_is("outerr", ["outer", "inner"])
    "; did you mean 'outer'?"
    >>> what_there_is("rain", ["outer", "inner"])
    '; there are outer, inner'
    """
    return did_you_mean(name, known) or f"; there are {', '.join(known)}"


def chosen_options(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of an experiment, defaults for those not given; refuse unknown names.

    >>> chosen_options({"epochs": [5]}, {"epochs": [50], "batch_size": 128})
    {'epochs': [5], 'batch_size': 128}
    """
    refuse_unknown(options, defaults, "options.")
    return {**defaults, **options}


MODES = ("first", "each")
PLACE = ("folder", "where", "experiments", "says_trials")  # where a spec comes from, not what it is
# Keys that older stores do not know; their defaults are as it was, and leave the hash as it was.
ADDED_LATER = {
    "tuning": ("trials",),
    "training": ("max_units",),
    "folds": ("repeats", "group", "time", "given", "judged"),
}
LATER = {key for keys in ADDED_LATER.values() for key in keys}
TRIALS = ("trials_per_hyperparameter", "trials")  # what says that something is tuned


@dataclass(frozen=True)
class Data:
    """Which tables: ``source`` as :func:`cocoloss.tables.load_source` has it, and names of it."""

    source: str
    datasets: tuple[str, ...] = ()  # none named: all
    max_rows: int = 0  # 0: no cap


@dataclass(frozen=True)
class Folds:
    """How rows are split: ``outer`` folds to judge, ``inner`` ones to tune.

    At most one of ``group``, ``time`` and ``given`` is not empty. The column is no feature then.
    """

    outer: int = 10
    inner: int = 3
    seed: int = 0
    repeats: int = 1  # of the outer folds, each time shuffled anew
    group: str = ""  # column: rows with one value are in one fold
    time: str = ""  # column: a fold is learnt from what was before it
    given: str = ""  # column of numbers of folds, or a CSV file of them
    judged: int = 0  # only the first so many of the outer folds are run; 0: all

    @property
    def split(self) -> tuple[str, str]:
        """How rows are split if not at random, "group", "time" or "given", and by which column."""
        for how in ("group", "time", "given"):
            if getattr(self, how):
                return how, GIVEN if self.given_file else getattr(self, how)
        return "", ""

    @property
    def given_file(self) -> str:
        """The file of folds, if there is one."""
        return self.given if self.given.lower().endswith(".csv") else ""


@dataclass(frozen=True)
class Models:
    """Which models by name; ``own`` says where the user's own are made."""

    names: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tuning:
    """Trials per hyperparameter, tuned on the first outer fold or on each, so many at once."""

    trials_per_hyperparameter: int = 10
    trials: Mapping[str, int] = field(default_factory=dict)  # of single models, instead
    mode: str = "first"
    parallel: int = 0  # 0: as many as workers are idle


@dataclass(frozen=True)
class Training:
    """Epochs of the networks, and the most units that a hidden layer is tried with."""

    epochs: int = 500
    max_units: int = 0  # 0: as the search space has it


@dataclass(frozen=True)
class Limits:
    """What a task may take: seconds, and bytes beyond what its worker had; 0 is no limit.

    And where it computes: on how many threads, and on which device our networks are trained.
    """

    seconds_per_task: float = 0
    memory_per_task: int = 0
    threads: int = 1
    device: str = "cpu"


@dataclass(frozen=True)
class Spec:
    """A benchmark.

    Examples
    --------
    >>> spec = Spec.from_dict({
    ...     "name": "small",
    ...     "kind": "accuracy",
    ...     "data": {"source": "sklearn", "datasets": ["iris"]},
    ...     "models": {"names": ["coco", "rf"]},
    ...     "folds": {"outer": 3},
    ... })
    >>> spec.folds.outer, spec.folds.inner
    (3, 3)

    What does not change a task's numbers does not change the hash:

    >>> spec.hash == spec.changed(datasets=["wine"]).hash
    True
    """

    name: str  # what reports call it
    kind: str  # of experiment, as cocoloss.benchmark.tasks.load_experiment has it
    data: Data
    models: Models
    deviations: tuple[str, ...] = ()  # in words, what differs from the paper
    folds: Folds = field(default_factory=Folds)
    tuning: Tuning = field(default_factory=Tuning)
    training: Training = field(default_factory=Training)
    limits: Limits = field(default_factory=Limits)
    measures: tuple[str, ...] = ()  # beside those of the kind: scorers by name, module:function
    optimise: str = ""  # the measure that is tuned by; "" is that of the kind
    keep_predictions: bool = False  # of outer folds, beside the store
    options: Mapping[str, Any] = field(default_factory=dict)  # that only this kind knows
    folder: Path = field(default_factory=Path, compare=False)  # where paths of the source begin
    where: str = field(default="spec", compare=False)  # what messages call it
    experiments: tuple[Path, ...] = field(default=(), compare=False)  # folders to look for it in
    says_trials: bool = field(default=True, compare=False)  # or they are the defaults

    @classmethod
    def from_dict(
        cls,
        content: Mapping[str, Any],
        *,
        where: str = "spec",
        folder: Path | None = None,
        experiments: Iterable[Path] = (),
    ) -> "Spec":
        """Return the benchmark that a mapping describes.

        What is unknown, missing or wrong is a CoCoError that begins with ``where`` and the key.
        """
        try:
            read = _read(cls, content, folder or Path())
            return replace(read, where=where, experiments=tuple(experiments))
        except CoCoError as error:
            raise CoCoError(f"{where}: {error}") from None

    @property
    def hash(self) -> str:
        """Digest of what changes a task's numbers, beside what its key says anyway.

        A key has the names of dataset and model, the table's fingerprint and the place of the
        user's own model. So a dataset or a model more leaves all finished tasks as they are.
        """
        deciding: dict[str, Any] = {
            name: asdict(getattr(self, name)) for name in ("folds", "tuning", "training")
        }
        for section, keys in ADDED_LATER.items():
            usual = SECTIONS[section][0]()
            for key in keys:
                if deciding[section][key] == getattr(usual, key):
                    del deciding[section][key]
        deciding |= {"kind": self.kind, "max_rows": self.data.max_rows, "options": self.options}
        if self.measures:
            deciding["measures"] = sorted(self.measures)
        if self.optimise:
            deciding["optimise"] = self.optimise
        if self._usually_untuned and self.tunes:
            deciding["tuned"] = True
        return digest_of(deciding)

    @property
    def _usually_untuned(self) -> bool:
        """Whether models of the kind have their usual settings unless the spec says otherwise."""
        return not properties_of(self.kind).tunes

    @property
    def tunes(self) -> bool:
        """Whether anything is tuned: numbers and levels only if trials or a measure are named."""
        if self._usually_untuned and not (self.says_trials or self.optimise):
            return False
        return self.tuning.trials_per_hyperparameter > 0 or any(self.tuning.trials.values())

    def content(self) -> dict[str, Any]:
        """Return what :meth:`from_dict` takes."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in PLACE}
        for name in SECTIONS:
            content[name] = asdict(content[name])
        if not self.says_trials and self._usually_untuned:
            for name in TRIALS:
                del content["tuning"][name]
        content["options"] = dict(self.options)
        return content

    def changed(
        self,
        *,
        datasets: list[str] | tuple[str, ...] | None = None,
        own: Mapping[str, str] | None = None,
        source: str | None = None,
        keep_predictions: bool | None = None,
        **limits: Any,
    ) -> "Spec":
        """Return the benchmark on other datasets, with further models, or with other limits.

        The paths of another ``source`` begin at the current folder, not at that of the file.
        """
        content = self.content()
        if datasets:
            content["data"]["datasets"] = list(datasets)
        if own:
            models = content["models"]
            models["own"] = {**models["own"], **own}
        content["limits"] |= {name: value for name, value in limits.items() if value is not None}
        if source is not None:
            content["data"]["source"] = source
        if keep_predictions is not None:
            content["keep_predictions"] = keep_predictions
        folder = self.folder if source is None else Path.cwd()
        return Spec.from_dict(
            content, where=self.where, folder=folder, experiments=self.experiments
        )

    @contextmanager
    def at(self, key: str = "") -> Iterator[None]:
        """Have what is refused within begin with the file and the key."""
        try:
            yield
        except CoCoError as error:
            raise CoCoError(f"{self.where}: {key}{': ' if key else ''}{error}") from error


def load_spec(path: str | Path, *, experiments: Iterable[str | Path] = ()) -> Spec:
    """Read a benchmark from a TOML file.

    Parameters
    ----------
    path : path
    experiments : iterable of path
        Folders in which an experiment of one's own is looked for, after that of the file.

    Raises
    ------
    CoCoError
        If the file is missing, is no TOML, or says something that cannot be; the message names
        the file and the key.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CoCoError(f"there is no spec {path}; give the path of a TOML file") from None
    except OSError as error:
        raise CoCoError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CoCoError(f"{path.name}: no text in UTF-8; a spec is a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise CoCoError(f"{path.name}: not valid TOML: {error}") from error
    folder = path.resolve().parent
    places = (folder, *(Path(place).resolve() for place in experiments))
    return Spec.from_dict(content, where=path.name, folder=folder, experiments=places)


# section -> (class, key -> check); what has no default in the class must be given
SECTIONS: dict[str, tuple[type, dict[str, Check]]] = {
    "data": (Data, {"source": text, "datasets": texts, "max_rows": whole(0)}),
    "models": (Models, {"names": texts, "own": places}),
    "folds": (
        Folds,
        {
            "outer": whole(2),
            "inner": whole(2),
            "seed": whole(0),
            "repeats": whole(1),
            "group": text,
            "time": text,
            "given": text,
            "judged": whole(0),
        },
    ),
    "tuning": (
        Tuning,
        {
            "trials_per_hyperparameter": whole(0),
            "trials": numbers_of_trials,
            "mode": lambda value, name: check_option(value, name, MODES),
            "parallel": whole(0),
        },
    ),
    "training": (Training, {"epochs": whole(1), "max_units": whole(0)}),
    "limits": (
        Limits,
        {
            "seconds_per_task": check_seconds,
            "memory_per_task": check_bytes,
            "threads": whole(1),
            "device": text,
        },
    ),
}
TOP: dict[str, Check] = {
    "name": text,
    "kind": kind_of_experiment,
    "deviations": texts,
    "measures": texts,
    "optimise": text,
    "keep_predictions": truth,
}
NEEDED = {"": ("name", "kind"), "data": ("source",)}


def _read(cls: type[Spec], content: Mapping[str, Any], folder: Path) -> Spec:
    if not isinstance(content, Mapping):
        raise CoCoError(f"a spec is a table of keys, not {type(content).__name__}")
    refuse_unknown(content, [*TOP, *SECTIONS, "options"], "")
    _refuse_missing(content, "")
    given_keys = {k: v for k, v in content.items() if v != "" or k != "optimise"}
    found: dict[str, Any] = {k: c(given_keys[k], k) for k, c in TOP.items() if k in given_keys}
    for name, (section, checks) in SECTIONS.items():
        given = content.get(name, {})
        if not isinstance(given, Mapping):
            raise CoCoError(f"{name} must be a section, [{name}], not {given!r}")
        refuse_unknown(given, list(checks), f"{name}.")
        _refuse_missing(given, name)
        # What is empty is as if it were left out; a spec writes itself down so.
        filled = {key: value for key, value in given.items() if value != "" or key not in LATER}
        values = {key: checks[key](value, f"{name}.{key}") for key, value in filled.items()}
        found[name] = section(**values)
    _check_splits(found["folds"])
    own = found["models"].own  # run too, without their being named twice
    found["models"] = Models(tuple(dict.fromkeys([*found["models"].names, *own])), own)
    if not found["models"].names:
        raise CoCoError("models.names is missing; name at least one model")
    options = content.get("options", {})
    if not isinstance(options, Mapping):
        raise CoCoError(f"options must be a section, [options], not {options!r}")
    try:
        digest_of(options)
    except CoCoError:  # a date, say
        raise CoCoError("options must hold numbers, texts, lists and tables only") from None
    says_trials = any(name in content.get("tuning", {}) for name in TRIALS)
    return cls(**found, options=dict(options), folder=folder, says_trials=says_trials)


def _check_splits(folds: Folds) -> None:
    """Refuse two ways to split, and repeats of what has no chance in it."""
    ways = [how for how in ("group", "time", "given") if getattr(folds, how)]
    if len(ways) > 1:
        raise CoCoError(f"folds.{ways[0]} and folds.{ways[1]} are two ways to split; name one")
    if folds.repeats > 1 and ways and ways[0] != "group":
        raise CoCoError(
            f"folds.repeats shuffles anew, but folds.{ways[0]} has nothing to shuffle; name one"
        )


def _refuse_missing(given: Mapping[str, Any], section: str) -> None:
    for key in NEEDED.get(section, ()):
        if key not in given:
            raise CoCoError(f"{section}{'.' if section else ''}{key} is missing")
