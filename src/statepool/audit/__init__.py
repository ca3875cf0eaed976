"""Should you pool? From a log of decisions to an answer, and to the map to start with."""

from statepool.audit.audit import Audit, audit_log

__all__ = ["Audit", "audit_log"]
