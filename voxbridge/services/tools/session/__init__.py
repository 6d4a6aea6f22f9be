"""One session in this process: where its calls come in, how an input is taken, and the functions that run."""
