"""Sessions for operators: listing, export, replay, moving, erasing, and conversion to a WAV or a trace."""
