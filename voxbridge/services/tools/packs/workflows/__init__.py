"""Functions that list and run workflows, and the workflows that are always there."""
