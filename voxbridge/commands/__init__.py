"""The commands of `voxbridge`, one module each: their words, options and output."""
