"""Declarations of the utilities, a module for each subject."""
