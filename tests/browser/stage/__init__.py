"""Parts that browser tests are played with: the product started, Studio driven, speech as a microphone, vendors, a cut cable, old calls."""
