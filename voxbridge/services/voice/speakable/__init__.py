"""Text as a voice should say it: numbers, dates, money, units, addresses and markup in words."""
