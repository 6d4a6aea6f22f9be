"""Projects: folders of the workspace."""
