"""Made log sets of any size, which pass every rule of their readers."""
