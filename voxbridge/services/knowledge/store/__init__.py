"""The files of a graph: SQLite is the truth; the index of words and the table of vectors are made from it."""
