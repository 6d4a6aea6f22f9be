"""MCP servers: their tools are functions like any other, under names of their own and by rules of the configuration."""
