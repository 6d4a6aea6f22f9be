"""Language models as services ask them: a conversation in, text and calls out, each vendor behind one interface."""
