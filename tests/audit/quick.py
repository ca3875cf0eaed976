"""Settings that do not change the verdict: short simulations, and no bracket that closes further on a faster day."""

QUICK = {"horizon": 200}
