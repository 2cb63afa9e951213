"""What tests with several workers share."""

import pytest

from tests.study.crew import whole


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    """The digest of the study when one process does it."""
    return whole(tmp_path_factory.mktemp("whole") / "study")
