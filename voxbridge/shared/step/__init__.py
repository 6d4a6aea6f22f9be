"""Pure steps: folding one over the log, running one live, and replaying one against a recording."""
