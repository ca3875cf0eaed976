"""The dashboard: what the page of a pool shows; the service has its addresses."""

from statepool.live.dashboard.formatting import FILTERS, label
from statepool.live.dashboard.page import page_of

__all__ = ["FILTERS", "label", "page_of"]
