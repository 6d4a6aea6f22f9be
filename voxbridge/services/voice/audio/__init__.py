"""Audio of a session: microphone frames in order, speech detection, paced replies, recordings and their waveforms."""
