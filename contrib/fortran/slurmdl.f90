! SPDX-License-Identifier: Apache-2.0
! The main functions of slurmdl.h for Fortran 2003.  Texts are passed as
! c_string ("name"); slurmdl.h says what each function does.
module slurmdl
    use, intrinsic :: iso_c_binding
    implicit none

    type, bind (c) :: slurmdl_error
        character (kind=c_char) :: text(256) = c_null_char
    end type

    enum, bind (c)
        enumerator :: SLURMDL_I8, SLURMDL_U8, SLURMDL_I32, SLURMDL_U32, SLURMDL_I64, SLURMDL_U64
        enumerator :: SLURMDL_F16, SLURMDL_F32, SLURMDL_F64
    end enum

    interface
        ! dir: c_null_ptr, or c_loc of a text that ends with c_null_char
        function slurmdl_open (dir, err) bind (c)
            import :: c_ptr, slurmdl_error
            type (c_ptr), value :: dir
            type (slurmdl_error), intent (inout) :: err
            type (c_ptr) :: slurmdl_open
        end function
        function slurmdl_close (run) bind (c)
            import :: c_ptr, c_int
            type (c_ptr), value :: run
            integer (c_int) :: slurmdl_close
        end function
        function slurmdl_length (run) bind (c)
            import :: c_ptr, c_int64_t
            type (c_ptr), value :: run
            integer (c_int64_t) :: slurmdl_length
        end function
        function slurmdl_rank (run) bind (c)
            import :: c_ptr, c_long
            type (c_ptr), value :: run
            integer (c_long) :: slurmdl_rank
        end function
        function slurmdl_float (run, name, otherwise) bind (c)
            import :: c_ptr, c_char, c_double
            type (c_ptr), value :: run
            character (kind=c_char), intent (in) :: name(*)
            real (c_double), value :: otherwise
            real (c_double) :: slurmdl_float
        end function
        function slurmdl_int (run, name, otherwise) bind (c)
            import :: c_ptr, c_char, c_int64_t
            type (c_ptr), value :: run
            character (kind=c_char), intent (in) :: name(*)
            integer (c_int64_t), value :: otherwise
            integer (c_int64_t) :: slurmdl_int
        end function
        function slurmdl_metric (run, name) bind (c)
            import :: c_ptr, c_char
            type (c_ptr), value :: run
            character (kind=c_char), intent (in) :: name(*)
            type (c_ptr) :: slurmdl_metric
        end function
        function slurmdl_log_to (metric, step, value) bind (c)
            import :: c_ptr, c_int, c_int64_t, c_double
            type (c_ptr), value :: metric
            integer (c_int64_t), value :: step
            real (c_double), value :: value
            integer (c_int) :: slurmdl_log_to
        end function
        function slurmdl_log (run, name, step, value) bind (c)
            import :: c_ptr, c_char, c_int, c_int64_t, c_double
            type (c_ptr), value :: run
            character (kind=c_char), intent (in) :: name(*)
            integer (c_int64_t), value :: step
            real (c_double), value :: value
            integer (c_int) :: slurmdl_log
        end function
        function slurmdl_log_vector (run, name, step, n, values) bind (c)
            import :: c_ptr, c_char, c_int, c_int64_t, c_size_t, c_double
            type (c_ptr), value :: run
            character (kind=c_char), intent (in) :: name(*)
            integer (c_int64_t), value :: step
            integer (c_size_t), value :: n
            real (c_double), intent (in) :: values(*)
            integer (c_int) :: slurmdl_log_vector
        end function
        function slurmdl_log_text (run, name, step, text) bind (c)
            import :: c_ptr, c_char, c_int, c_int64_t
            type (c_ptr), value :: run
            character (kind=c_char), intent (in) :: name(*)
            integer (c_int64_t), value :: step
            character (kind=c_char), intent (in) :: text(*)
            integer (c_int) :: slurmdl_log_text
        end function
        function slurmdl_epoch (run, epoch) bind (c)
            import :: c_ptr, c_int, c_double
            type (c_ptr), value :: run
            real (c_double), value :: epoch
            integer (c_int) :: slurmdl_epoch
        end function
        function slurmdl_flush (run, err) bind (c)
            import :: c_ptr, c_int, slurmdl_error
            type (c_ptr), value :: run
            type (slurmdl_error), intent (inout) :: err
            integer (c_int) :: slurmdl_flush
        end function
        ! dims: in C order, the last one changes fastest; data: c_loc (array)
        function slurmdl_protect (run, name, kind, ndims, dims, data) bind (c)
            import :: c_ptr, c_char, c_int, c_int64_t
            type (c_ptr), value :: run
            character (kind=c_char), intent (in) :: name(*)
            integer (c_int), value :: kind
            integer (c_int), value :: ndims
            integer (c_int64_t), intent (in) :: dims(*)
            type (c_ptr), value :: data
            integer (c_int) :: slurmdl_protect
        end function
        function slurmdl_save (run, step, err) bind (c)
            import :: c_ptr, c_int, c_int64_t, slurmdl_error
            type (c_ptr), value :: run
            integer (c_int64_t), value :: step
            type (slurmdl_error), intent (inout) :: err
            integer (c_int) :: slurmdl_save
        end function
        function slurmdl_restore (run, step, err) bind (c)
            import :: c_ptr, c_int, c_int64_t, slurmdl_error
            type (c_ptr), value :: run
            integer (c_int64_t), intent (inout) :: step
            type (slurmdl_error), intent (inout) :: err
            integer (c_int) :: slurmdl_restore
        end function
        function slurmdl_should_stop (run) bind (c)
            import :: c_ptr, c_int
            type (c_ptr), value :: run
            integer (c_int) :: slurmdl_should_stop
        end function
    end interface

contains

    pure function c_string (text)
        character (*), intent (in) :: text
        character (len=len_trim (text) + 1, kind=c_char) :: c_string

        c_string = trim (text)//c_null_char
    end function

    ! The line that an error has, without the NUL.
    function slurmdl_message (err)
        type (slurmdl_error), intent (in) :: err
        character (:), allocatable :: slurmdl_message
        integer :: i

        slurmdl_message = ''
        do i = 1, size (err%text)
            if (err%text(i) == c_null_char) exit
            slurmdl_message = slurmdl_message//err%text(i)
        end do
    end function
end module
