"""`voxbridge up`: the processes of one machine, started, watched, started again, and shown in one console."""
