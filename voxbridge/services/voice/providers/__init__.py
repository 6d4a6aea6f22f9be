"""Vendors and endpoints, each behind one of two interfaces: `realtime` and `cascade`."""
