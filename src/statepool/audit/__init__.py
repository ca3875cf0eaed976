"""Should you pool? From a log of decisions to an answer, and to the pool to start with."""

from statepool.extras import explained

try:
    from statepool.audit.audit import Audit, audit_log, what_if
except ImportError as error:
    raise explained("audit", error) from None

__all__ = ["Audit", "audit_log", "what_if"]
