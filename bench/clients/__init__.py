"""Load generators, callers, intruders and baselines: the client processes of the measurements."""
