"""Vendors and endpoints, each behind one of two seams: `realtime` and `cascade`."""
