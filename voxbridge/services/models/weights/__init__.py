"""Files of weights: the manifest, where their bytes come from, and the folder of those that were verified."""
