"""Shop: products shown to visitors, stages of a visit as states, and revenue as the outcome.

A purchase is reported when it happens, and that nothing was bought only when the window closes: run these families
with `sp.Conversions(window, waits)`. The loss is 1 where nothing is bought and 1 less the revenue otherwise, as a share
of the largest revenue.
"""

import numpy as np

from statepool.checks import Floats, check_number, check_sizes
from statepool.families.shapes import progress
from statepool.model import Instance
from statepool.stream import Seed, generator_of

STAGES = np.array([0.55, 0.25, 0.12, 0.05, 0.03])
"""How often a visit ends in each of five stages, on average."""
PURCHASES = np.array([0.0, 0.01, 0.05, 0.25, 0.6])
"""How often a visit that ends there is followed by a purchase."""
CONCENTRATION = 12.0
"""How alike products are: rows are Dirichlet with this many times STAGES."""


def shop(
    seed: Seed, n_actions: int = 30, n_states: int = 5, horizon: int = 20_000, revenue: float = 0.5, season: float = 0.0
) -> Instance:
    """A shop in which all products cost about the same.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    n_actions, n_states, horizon : int
        Products, stages of a visit, and visits.
    revenue : float
        The mean revenue of a purchase, at most 2/3 of the largest; it varies by half of itself. 1 is for purchases that
        are only counted: losses are 0 or 1.
    season : float
        The share by which purchases rise and fall in a season.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.families.shop(seed=0, horizon=100)
    Instance(30 actions, 5 states, 100 rounds)
    """
    P, buying, _ = _visits(seed, n_actions, n_states, horizon, season)
    check_number(revenue, "revenue", 0, 1, open_low=True)
    return Instance(P, 1 - revenue * buying, gains=None if revenue == 1 else np.full(P.shape, revenue))


def shop_with_prices(
    seed: Seed, n_actions: int = 30, n_states: int = 5, horizon: int = 20_000, revenue: float = 0.25,
    spread: float = 0.5,
) -> Instance:  # fmt: skip
    """A shop whose products have prices: what a purchase brings depends on the product, beyond the stage.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    n_actions, n_states, horizon : int
        Products, stages of a visit, and visits.
    revenue : float
        The median price, as a share of the largest revenue; what a purchase brings varies by half of the price.
    spread : float
        The standard deviation of the prices' logarithm.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.families.shop_with_prices(seed=0, horizon=100)
    Instance(30 actions, 5 states, 100 rounds, with direct effects)
    """
    P, buying, rng = _visits(seed, n_actions, n_states, horizon, season=0.0)
    check_number(revenue, "revenue", 0, 2 / 3, open_low=True)
    check_number(spread, "spread", 0, 10)
    prices = np.minimum(revenue * np.exp(spread * rng.standard_normal(n_actions)), 2 / 3)
    effects = -(prices[:, None] - revenue) * buying[0]
    return Instance(P, 1 - revenue * buying, effects, gains=np.broadcast_to(prices[:, None], P.shape))


def _visits(
    seed: Seed, n_actions: int, n_states: int, horizon: int, season: float
) -> tuple[Floats, Floats, np.random.Generator]:
    """Rows of the products, and how often each stage is followed by a purchase, round by round."""
    check_sizes(n_actions=n_actions, n_states=n_states, horizon=horizon)
    check_number(season, "season", 0, 1)
    rng = generator_of(seed)
    place = np.linspace(0, STAGES.size - 1, n_states)
    stages = np.exp(np.interp(place, np.arange(STAGES.size), np.log(STAGES)))
    P = rng.dirichlet(CONCENTRATION * stages / stages.sum(), n_actions)
    buying = np.interp(place, np.arange(STAGES.size), PURCHASES) * rng.uniform(0.7, 1.3, n_states)
    wave = 1 + season * np.sin(2 * np.pi * progress(horizon) + rng.uniform(0, 2 * np.pi))
    return P, np.minimum(buying * wave, 1.0), rng
