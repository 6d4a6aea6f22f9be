"""What is measured, one module for each area of `make bench`."""
