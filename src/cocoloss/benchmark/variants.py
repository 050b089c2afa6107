"""What benchmarks of a store are called: by name, and by hash too where two have one name.

A spec whose folds, tuning, epochs or options were changed is another benchmark beside the first,
of the same name.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cocoloss.exceptions import CoCoError

SHOWN = 6  # digits of a hash; enough to tell a handful apart


def labels_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return what each benchmark is called, by the hash of its spec, the first started first.

    Parameters
    ----------
    runs : list of dict
        Starts of drivers, the earliest first; the last name of a spec counts.

    Examples
    --------
    >>> labels_of([{"spec_hash": "ab12cd34", "name": "mine"}])
    {'ab12cd34': 'mine'}
    >>> twice = [{"spec_hash": text, "name": "mine"} for text in ("ab12cd34", "0123456789")]
    >>> labels_of(twice)
    {'ab12cd34': 'mine@ab12cd', '0123456789': 'mine@012345'}
    """
    names = {run["spec_hash"]: str(run["name"]) for run in runs}
    given = list(names.values())
    return {
        spec_hash: f"{name}@{spec_hash[:SHOWN]}" if given.count(name) > 1 else name
        for spec_hash, name in names.items()
    }


def chosen_variants(
    runs: Sequence[Mapping[str, Any]], wanted: Collection[str], store: str
) -> list[str]:
    """Return the hashes of the benchmarks that are named, the first started first.

    Parameters
    ----------
    runs : list of dict
        As of :func:`labels_of`.
    wanted : collection of str
        NAME, which is all benchmarks of that name, or NAME@HASH, of which the first digits will
        do; none named is all of them.
    store : str
        What messages call the store.

    Raises
    ------
    CoCoError
        If there is none of a name.

    Examples
    --------
    >>> runs = [{"spec_hash": text, "name": "mine"} for text in ("ab12cd34", "0123456789")]
    >>> chosen_variants(runs, ["mine@0123"], "results.sqlite")
    ['0123456789']
    """
    names = {run["spec_hash"]: str(run["name"]) for run in runs}
    found: set[str] = set()
    for each in wanted:
        name, _, digits = each.rpartition("@")
        here = {h for h, own in names.items() if own == each}
        here |= {h for h, own in names.items() if own == name and h.startswith(digits) and digits}
        if not here:
            there = ", ".join(dict.fromkeys(labels_of(runs).values()))
            raise CoCoError(f"{store} has no benchmark {each!r}; it has {there or 'none'}")
        found |= here
    return [spec_hash for spec_hash in names if spec_hash in found or not wanted]
