! A sparse solver with bracketed kernels (Fortran 2003): products of random sparse matrices with
! vectors, and steps of Richardson's iteration.
!
!     folder=$(tracebigsim --include-dir)
!     gcc -O2 -c "$folder/tracebigsim_fortran.c"
!     gfortran -O2 "$folder/tracebigsim.f90" solver.f90 tracebigsim_fortran.o -o solver
!     ./solver 300 1
!
! prints 300 timing lines of each kernel, drawn with seed 1.
module sparse
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none

  ! Compressed rows: row i has values(starts(i):starts(i + 1) - 1) in columns.
  type :: matrix
    integer :: rows
    integer, allocatable :: starts(:), columns(:)
    real(real64), allocatable :: values(:)
  end type

  integer(int64) :: state = 1

contains

  ! A whole number from low to high, the same on every machine.
  integer function drawn(low, high)
    integer, intent(in) :: low, high
    state = mod(state * 16807_int64, 2147483647_int64)
    drawn = low + int(mod(state, int(high - low + 1, int64)))
  end function

  ! A matrix whose rows have from 1 to `most` entries.
  function random_matrix(rows, most) result(made)
    integer, intent(in) :: rows, most
    type(matrix) :: made
    integer :: entry, row
    made%rows = rows
    allocate(made%starts(rows + 1))
    made%starts(1) = 1
    do row = 1, rows
      made%starts(row + 1) = made%starts(row) + drawn(1, most)
    end do
    allocate(made%columns(made%starts(rows + 1) - 1), made%values(made%starts(rows + 1) - 1))
    made%columns = [(drawn(1, rows), entry = 1, size(made%columns))]
    made%values = 0.5_real64 / most
  end function

  subroutine multiply(a, x, y)
    type(matrix), intent(in) :: a
    real(real64), intent(in) :: x(:)
    real(real64), intent(out) :: y(:)
    integer :: row, entry
    real(real64) :: sum
    do row = 1, a%rows
      sum = 0
      do entry = a%starts(row), a%starts(row + 1) - 1
        sum = sum + a%values(entry) * x(a%columns(entry))
      end do
      y(row) = sum
    end do
  end subroutine

  subroutine step(x, y, times)
    real(real64), intent(inout) :: x(:)
    real(real64), intent(in) :: y(:)
    integer, intent(in) :: times
    integer :: number
    do number = 1, times
      x = x + 0.1_real64 * (1 - x - y)
    end do
  end subroutine

end module

program solver
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char, c_null_ptr, c_ptr
  use sparse
  use tracebigsim
  implicit none

  ! C's output, because gfortran's does not report a full disk.
  interface
    integer(c_int) function puts(text) bind(c)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: text(*)
    end function

    integer(c_int) function fflush(stream) bind(c)
      import :: c_int, c_ptr
      type(c_ptr), value :: stream
    end function
  end interface

  character(len=80) :: text
  integer :: systems, number, times
  real(real64) :: sum
  type(matrix) :: a
  real(real64), allocatable :: x(:), y(:)

  systems = argument(1, 100)
  state = argument(2, 1)
  sum = 0
  do number = 1, systems
    a = random_matrix(drawn(500, 3000), drawn(4, 40))
    allocate(x(a%rows), y(a%rows))
    x = 1

    call startTraceBigSim()
    call multiply(a, x, y)
    call endTraceBigSim("multiply", a%rows, size(a%values))

    times = drawn(5, 50)
    call startTraceBigSimFor("step", a%rows * times)
    call step(x, y, times)
    call endTraceBigSim("step", a%rows * times)

    sum = sum + x(1)
    deallocate(x, y)
  end do
  write (text, '(i0, a, f0.6)') systems, " systems, sum ", sum
  if (puts(trim(text) // c_null_char) < 0) stop 1
  if (fflush(c_null_ptr) /= 0) stop 1

contains

  ! A whole number from the command line.
  integer function argument(place, default)
    integer, intent(in) :: place, default
    character(len=20) :: text
    argument = default
    if (command_argument_count() < place) return
    call get_command_argument(place, text)
    read (text, *) argument
  end function

end program
