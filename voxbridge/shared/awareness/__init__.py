"""The user's screen as an agent may know it: its entries, their cleaning, and the part of the prompt that is made of them. Pure."""
