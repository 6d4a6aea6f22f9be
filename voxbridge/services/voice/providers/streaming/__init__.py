"""Parts of a cascade that hear and speak over a socket that stays open: a recogniser that follows the speaker, a voice that is fast."""
