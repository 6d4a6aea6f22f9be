"""The functions of the installation, a folder for each subject. No pack imports another."""
