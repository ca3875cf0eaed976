"""The dashboard: what the page of a pool shows; the service has its addresses."""
