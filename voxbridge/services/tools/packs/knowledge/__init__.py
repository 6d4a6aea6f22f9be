"""Knowledge graphs: searched, analysed, and given documents, by the knowledge service."""
