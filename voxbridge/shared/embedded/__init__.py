"""nats-server and Valkey as child processes on loopback, and their configuration."""
