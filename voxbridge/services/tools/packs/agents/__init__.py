"""Functions about agents: those that work in the background, and experts who answer from documents of their own."""
