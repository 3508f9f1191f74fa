"""What the Python interface has besides the commands: fitted models, and the pages of results."""
