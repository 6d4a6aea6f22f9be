"""Ownership of sessions: leases, takeovers, moves, load, and the detection of dead workers."""
