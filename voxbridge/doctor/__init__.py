"""`voxbridge doctor`: explains what is wrong with an installation and how to mend it. Looks, and changes nothing."""
