"""`python -m voxbridge` is `voxbridge`."""

from voxbridge.cli import main

main()
