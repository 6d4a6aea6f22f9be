"""Whose session it is: leases, takeovers, moves, load, and the news that another worker died."""
