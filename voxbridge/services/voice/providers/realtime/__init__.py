"""The interface to models that hear and speak themselves, the link that holds a connection to one, and the vendors behind it."""
