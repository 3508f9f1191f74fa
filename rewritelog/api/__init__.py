"""What Python has besides the commands: fitted models, a regressor, and the pages of results."""
