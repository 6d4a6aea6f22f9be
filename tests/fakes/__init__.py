"""Stand-ins for vendors' services: the bytes that they send and the requests that they refuse, as far as known from outside.

The tests of each stand-in drive it through the vendor's SDK only. Each module states which of its rules are documented, reported by others,
or assumed.
"""
