"""The event log on JetStream: its streams, reader, writer, feeds and quotas, and sessions as files."""
