"""``python -m cocoloss`` is the command ``cocoloss``."""

from cocoloss.cli import main

main()
