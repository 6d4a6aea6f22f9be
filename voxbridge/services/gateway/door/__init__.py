"""Who gets in: HTTP connections within bounds, Host and Origin, access, admission."""
