import pytest

from sandboxmcp.policy.engine import Engine, load_engine


@pytest.fixture(scope="session")
def engine() -> Engine:
    return load_engine()
