"""Routes of keys and approvals, for administrators and the owners of accounts."""
