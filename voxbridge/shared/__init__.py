"""What the services have in common: one room for each subject, and beside the rooms what every module may need."""
