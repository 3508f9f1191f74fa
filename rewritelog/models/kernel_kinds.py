"""Formulas by kind of kernel, which a formulas file may name in place of writing out terms.

They correspond to the standard models of the Lost Cycles Toolkit (Crovella and LeBlanc, "Parallel
performance prediction using lost cycles analysis", Supercomputing '94): known forms for kinds of
work, among which an engineer who knows the code chooses. Each one is the operation count of the
textbook algorithm, with the lower-order terms of real code (start-up, loop heads, surfaces), so
that the coefficients of the fit are seconds per operation.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.models.expressions import Expression, parse


@dataclass(frozen=True)
class KernelKind:
    """The terms of one kind of kernel."""

    of: tuple[str, ...]
    """The names of its sizes, in the order of `of` in a formulas file."""
    terms: tuple[str, ...]
    meant_for: str
    """The work that it describes, for documentation."""

    def expressions(self) -> tuple[Expression, ...]:
        """Return the terms, with p1 as the first size, p2 as the second and so on."""
        names = {name: number for number, name in enumerate(self.of, 1)}
        return tuple(parse(term, names=names) for term in self.terms)


KINDS = {
    "constant": KernelKind((), ("1",), "work that no parameter changes"),
    "linear": KernelKind(("n",), ("1", "n"), "a loop over n, a copy of n bytes"),
    "n-log-n": KernelKind(("n",), ("1", "n", "n*log1p(n)"), "sort, FFT, building a tree"),
    "quadratic": KernelKind(("n",), ("1", "n", "n^2"), "all pairs among n"),
    "cubic": KernelKind(("n",), ("1", "n^2", "n^3"), "dense matrices of order n: product, LU, QR"),
    "two-loops": KernelKind(("m", "n"), ("1", "m", "m*n"), "a loop over n in a loop over m"),
    "three-loops": KernelKind(
        ("k", "m", "n"), ("1", "k", "k*m", "k*m*n"), "loops over k, m and n, the last innermost"
    ),
    "matrix-product": KernelKind(
        ("m", "n", "k"), ("1", "m*n + n*k + m*k", "m*n*k"), "m×k times k×n, with its memory traffic"
    ),
    "stencil-2d": KernelKind(("n",), ("1", "sqrt(n)", "n"), "n cells of a square, and its edge"),
    "stencil-3d": KernelKind(("n",), ("1", "n^(2/3)", "n"), "n cells of a cube, and its surface"),
    "stencil-block": KernelKind(
        ("nx", "ny", "nz"),
        ("1", "nx*ny + ny*nz + nx*nz", "nx*ny*nz"),
        "the cells of a block of any shape, and its surface",
    ),
    "pairwise": KernelKind(("n1", "n2"), ("1", "n1 + n2", "n1*n2"), "all pairs between two groups"),
    "pairwise-cutoff": KernelKind(
        ("n1", "n2", "close"),
        ("1", "n1 + n2", "n1*n2", "close"),
        "pairs within a cutoff: all are tested, the `close` ones computed",
    ),
    "sparse-matrix-vector": KernelKind(
        ("rows", "nonzeros"), ("1", "rows", "nonzeros"), "also neighbour lists, graphs, meshes"
    ),
    "search": KernelKind(
        ("n", "lookups"),
        ("1", "lookups", "lookups*log1p(n)"),
        "look-ups in a tree or a sorted table",
    ),
    "fft-3d": KernelKind(
        ("nx", "ny", "nz"),
        ("1", "nx*ny*nz", "nx*ny*nz*log1p(nx*ny*nz)"),
        "a transform of a grid, or of a share of it",
    ),
    "tree": KernelKind(("p",), ("1", "ceil(log2(max(p, 1)))"), "a reduction or broadcast over p"),
    "tree-of-bytes": KernelKind(
        ("p", "bytes"),
        ("1", "ceil(log2(max(p, 1)))", "bytes*ceil(log2(max(p, 1)))"),
        "the same with messages whose size varies",
    ),
    "lost-work": KernelKind(
        ("P", "D"),
        ("P", "D"),
        "PE-seconds of work: a part that every PE repeats, and data that is divided among the PEs",
    ),
    "lost-communication": KernelKind(
        ("P", "D"),
        ("P", "P*log2(max(P, 1))", "P^(1/3)*D^(2/3)"),
        "PE-seconds in transit: neighbours, trees, and the surfaces of blocks",
    ),
    "lost-insufficient-parallelism": KernelKind(
        ("P", "D"),
        ("P - 1", "(P - 1)*D"),
        "PE-seconds while one PE works and the others wait for it",
    ),
    "lost-synchronisation": KernelKind(
        ("P", "D"),
        ("P", "D", "D^2/max(P, 1)"),
        "PE-seconds while some PEs work and others wait for them",
    ),
    "lost-load-imbalance": KernelKind(
        ("P", "D"),
        ("P*sqrt(log(max(P, 1)))", "D*sqrt(log(max(P, 1)))", "D^2/max(P, 1)*sqrt(log(max(P, 1)))"),
        "PE-seconds by which the slowest of P PEs is behind the others",
    ),
    "lost-start": KernelKind(
        ("P", "D"), ("P", "P*log2(max(P, 1))"), "PE-seconds until the first SEBs, by a tree"
    ),
    "lost-end": KernelKind(
        ("P", "D"),
        ("P*sqrt(log(max(P, 1)))", "D*sqrt(log(max(P, 1)))", "D^2/max(P, 1)*sqrt(log(max(P, 1)))"),
        "PE-seconds after the last SEBs: the slowest of P PEs ends the run",
    ),
}
"""The kinds by name; logarithms are of 1 + n, so that they are defined for a size of 0."""
