"""Services of Voxbridge; none imports another."""
