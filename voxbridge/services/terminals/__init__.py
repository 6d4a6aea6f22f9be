"""The terminals service: programs in terminals that outlive every service, with a screen, a state and proven input for each."""
