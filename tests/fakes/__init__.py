"""Stand-ins for vendors' services: what they send and what they refuse, byte for byte, as far as it is known from outside.

Each is driven in its own tests through the vendor's SDK only. What is documented, what others reported and what is assumed, each
module says where it decides.
"""
