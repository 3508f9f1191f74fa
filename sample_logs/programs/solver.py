"""A sparse solver with bracketed kernels, in plain Python: Jacobi's iteration.

    python solver.py 300 1

prints 300 timing lines of each kernel, drawn with seed 1. An mpi4py or charm4py program brackets
its kernels in the same way.
"""

import os
import random
import sys

import tracebigsim

Matrix = list[list[tuple[int, float]]]


def random_matrix(size: int, a_row: int, draw: random.Random) -> Matrix:
    """Make a matrix with `a_row` entries in each row, all of them 0.5 / a_row."""
    return [[(draw.randrange(size), 0.5 / a_row) for _ in range(a_row)] for _ in range(size)]


def rows(matrix: Matrix, *_: object) -> int:
    """Count the rows."""
    return len(matrix)


def entries(matrix: Matrix, *_: object) -> int:
    """Count the entries."""
    return sum(len(row) for row in matrix)


@tracebigsim.bracketed("multiply", rows, entries)
def multiply(matrix: Matrix, vector: list[float]) -> list[float]:
    """Multiply a sparse matrix with a vector."""
    return [sum(value * vector[column] for column, value in row) for row in matrix]


def residual(vector: list[float], product: list[float]) -> float:
    """Give the squared length of 1 - vector - product."""
    with tracebigsim.bracket("residual", len(vector)):
        return sum((1 - x - y) ** 2 for x, y in zip(vector, product, strict=True))


def main() -> None:
    """Take steps with many matrices."""
    systems = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    total = 0.0
    for _ in range(systems):
        matrix = random_matrix(draw.randint(200, 1500), draw.randint(3, 12), draw)
        vector = [1.0] * len(matrix)
        product = multiply(matrix, vector)
        total += residual(vector, product)
    print(f"{systems} systems, sum of residuals {total:.6f}")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except (OSError, tracebigsim.TraceFileError) as error:
        # Nobody reads the output, or there is no room for it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error.__cause__ or error, BrokenPipeError):
            sys.exit(141)
        sys.exit(f"solver.py: {error}")
