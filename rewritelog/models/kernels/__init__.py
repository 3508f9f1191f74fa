"""The compiled loops of the fits: stepwise selection of terms, errors of product shapes."""
