"""Files of weights: the manifest, their sources, and the folder of verified files."""
