"""Fixtures of the tests with several workers."""

import pytest

from tests.study.crew import whole


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    """The digest of the study when it runs in one process."""
    return whole(tmp_path_factory.mktemp("whole") / "study")
