"""Fits without a rewrite: fitting, predicting, verifying and comparing models.

- `fit`: fits a model to timing lines, and writes it to a model file
- `predict`: the predictions of a model file for the records of text files, or for one call
- `totals`: the run time as the sum of the predicted categories of lost cycles
- `verify`: a model file tested on timing lines
- `compare`: several models cross-validated on the same splits of timing lines
"""
