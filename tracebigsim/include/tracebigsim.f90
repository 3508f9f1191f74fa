! Brackets around the kernels of a Fortran 2008 program; link tracebigsim_fortran.c with it.
!
!     use tracebigsim
!     call startTraceBigSim()
!     call pair_forces(atoms, carbons)
!     call endTraceBigSim("pair_forces", atoms, carbons)   ! a name, then 0 to 20 numbers
!
! If name and numbers are known beforehand, startTraceBigSimFor("pair_forces", atoms, carbons)
! may replace the first call. The numbers are reals or integers of the usual kinds; a value of
! another type counts as NaN, so its bracket is reported and prints no line. Trailing blanks
! are not part of a name. Modes and environment variables are those of tracebigsim.h.
module tracebigsim
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_size_t
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
  implicit none
  private
  public :: startTraceBigSim, startTraceBigSimFor, endTraceBigSim, flushTraceBigSim

  ! A division by 0, and so an error, with options that change the size of C's double, such as
  ! gfortran's -freal-8-real-4: C would read other numbers. Compile this file without them.
  integer, parameter :: double_of_64_bits = 1 / merge(1, 0, storage_size(1.0_c_double) == 64)

  interface
    subroutine startTraceBigSim() bind(c, name="tracebigsim_fortran_start")
    end subroutine

    subroutine flushTraceBigSim() bind(c, name="tracebigsim_fortran_flush")
    end subroutine

    subroutine start_for(event, length, params, count) &
        bind(c, name="tracebigsim_fortran_start_for")
      import :: c_char, c_double, c_size_t
      character(kind=c_char), intent(in) :: event(*)
      integer(c_size_t), value :: length, count
      real(c_double), intent(in) :: params(*)
    end subroutine

    subroutine end_it(event, length, params, count) bind(c, name="tracebigsim_fortran_end")
      import :: c_char, c_double, c_size_t
      character(kind=c_char), intent(in) :: event(*)
      integer(c_size_t), value :: length, count
      real(c_double), intent(in) :: params(*)
    end subroutine
  end interface

contains

  ! Subroutines with variables are recursive, or all threads would share them under options such as
  ! gfortran's -fno-automatic.

  ! Open the thread's bracket, whose name and numbers are known.
  recursive subroutine startTraceBigSimFor(event, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
      p11, p12, p13, p14, p15, p16, p17, p18, p19, p20)
    character(len=*), intent(in) :: event
    class(*), intent(in), optional :: p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
        p11, p12, p13, p14, p15, p16, p17, p18, p19, p20
    real(c_double) :: params(20)
    integer(c_size_t) :: count

    call gather(params, count, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
        p11, p12, p13, p14, p15, p16, p17, p18, p19, p20)
    call start_for(event, int(len_trim(event), c_size_t), params, count)
  end subroutine

  ! Close the thread's bracket and write its line.
  recursive subroutine endTraceBigSim(event, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
      p11, p12, p13, p14, p15, p16, p17, p18, p19, p20)
    character(len=*), intent(in) :: event
    class(*), intent(in), optional :: p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
        p11, p12, p13, p14, p15, p16, p17, p18, p19, p20
    real(c_double) :: params(20)
    integer(c_size_t) :: count

    call gather(params, count, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
        p11, p12, p13, p14, p15, p16, p17, p18, p19, p20)
    call end_it(event, int(len_trim(event), c_size_t), params, count)
  end subroutine

  ! Put the numbers that are present into an array.
  subroutine gather(params, count, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
      p11, p12, p13, p14, p15, p16, p17, p18, p19, p20)
    real(c_double), intent(out) :: params(20)
    integer(c_size_t), intent(out) :: count
    class(*), intent(in), optional :: p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, &
        p11, p12, p13, p14, p15, p16, p17, p18, p19, p20

    count = 0
    call add(params, count, p1)
    call add(params, count, p2)
    call add(params, count, p3)
    call add(params, count, p4)
    call add(params, count, p5)
    call add(params, count, p6)
    call add(params, count, p7)
    call add(params, count, p8)
    call add(params, count, p9)
    call add(params, count, p10)
    call add(params, count, p11)
    call add(params, count, p12)
    call add(params, count, p13)
    call add(params, count, p14)
    call add(params, count, p15)
    call add(params, count, p16)
    call add(params, count, p17)
    call add(params, count, p18)
    call add(params, count, p19)
    call add(params, count, p20)
  end subroutine

  ! Append a number, if it is present.
  recursive subroutine add(params, count, param)
    real(c_double), intent(inout) :: params(20)
    integer(c_size_t), intent(inout) :: count
    class(*), intent(in), optional :: param

    if (.not. present(param)) return
    count = count + 1
    select type (param)
    type is (real(real64))
      params(count) = param
    type is (real(real32))
      params(count) = real(param, c_double)
    type is (integer(int32))
      params(count) = real(param, c_double)
    type is (integer(int64))
      params(count) = real(param, c_double)
    type is (integer(int16))
      params(count) = real(param, c_double)
    type is (integer(int8))
      params(count) = real(param, c_double)
    class default
      params(count) = ieee_value(params(count), ieee_quiet_nan)
    end select
  end subroutine

end module
