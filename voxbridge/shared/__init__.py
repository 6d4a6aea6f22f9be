"""Code that the services share: a package for each subject, and top-level modules that any module may need."""
