"""Files for the tests of tables."""

import pytest


@pytest.fixture
def saved(tmp_path):
    """Give what saves text or bytes to a file, and returns its path."""

    def save(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return save
