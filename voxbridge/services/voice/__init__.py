"""The voice service: runs sessions on realtime models and on the cascade."""
