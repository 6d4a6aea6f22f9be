"""Functions that the page of a session answers: the catalogue has their words and schemas, the page has their code."""
