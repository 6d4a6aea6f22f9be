"""Admission to the gateway: HTTP connection limits, Host and Origin checks, access rights, and quotas."""
