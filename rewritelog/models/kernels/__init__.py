"""The compiled loop of the models: which of many candidate terms a fit takes."""
