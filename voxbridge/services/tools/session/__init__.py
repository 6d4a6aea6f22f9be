"""The parts of a session in this process: the intake of its calls, the processing of its inputs, and the functions that run."""
