"""The command with the fake experiment in it, for tests that start it as a process."""

import bench_helpers  # noqa: F401 - registers the fake experiment

from cocoloss.cli import main

if __name__ == "__main__":
    main()
