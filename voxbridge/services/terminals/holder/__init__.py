"""The holder: a small process that forks programs in terminals, and keeps them while the service that draws them comes and goes."""
