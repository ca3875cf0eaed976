"""Should you pool? From a log of decisions to an answer, and to the pool to start with."""

from statepool.audit.audit import Audit, audit_log, what_if

__all__ = ["Audit", "audit_log", "what_if"]
