import pytest
from quick import QUICK
from shops import make_shop

from statepool.audit import audit_log


@pytest.fixture(scope="session")
def plain_shop():
    """One price for all: the state is all that matters."""
    return make_shop(
        4_000_001,
        n_products=12,
        stages=4,
        conversion=0.1,
        window=14,
        windows=4,
        prices="none",
        funnel=0.5,
        n_rows=30_000,
    )


@pytest.fixture(scope="session")
def priced_shop():
    """Prices that differ: direct effects."""
    return make_shop(
        4_000_001,
        n_products=12,
        stages=4,
        conversion=0.1,
        window=14,
        windows=4,
        prices="large",
        funnel=0.5,
        n_rows=30_000,
    )


@pytest.fixture(scope="session")
def plain_audit(plain_shop):
    return audit_log(plain_shop.log(0), missing=0, **QUICK)


@pytest.fixture(scope="session")
def priced_audit(priced_shop):
    return audit_log(priced_shop.log(0), missing=0, **QUICK)
