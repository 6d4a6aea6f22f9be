"""Knowledge: graphs of documents that agents search, one writer for each."""
