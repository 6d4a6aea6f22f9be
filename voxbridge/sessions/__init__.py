"""Sessions as operators need them: listed, exported, replayed, moved, erased, made a WAV or a trace."""
