"""The ways to choose terms, a module for each kind of function; `families` lists them.

- `sums`: functions of one parameter, their products, given terms
- `products`: partial products of the best product of all parameters
- `power_laws`: one power of each parameter, with a prior distribution, and sums of up to three
- `breaks`: powers with breaks, and factors for single values and beyond thresholds
- `program_terms`: branches, caches, loops, recursion
- `averaged_products`: for few samples, the mean of probable products
"""
