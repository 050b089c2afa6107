"""Looking over the shoulder of the package while it works."""

from cocoloss.training import BatchSampler, trainer


def note_which_batches_are_pairs(monkeypatch):
    """Return a list that grows by one for each training: whether its batches hold pairs."""
    in_pairs = []

    def sampler(*arguments, **options):
        in_pairs.append(options["in_pairs"])
        return BatchSampler(*arguments, **options)

    monkeypatch.setattr(trainer, "BatchSampler", sampler)
    return in_pairs
