"""The platform's door `/session`: keys, approvals and quotas, and the protocol of pages that are embedded elsewhere."""
