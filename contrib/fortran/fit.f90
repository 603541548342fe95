! SPDX-License-Identifier: Apache-2.0
! Example and test: a minimum is sought, logged, saved, and gone on from.
program fit
    use slurmdl
    implicit none
    type (slurmdl_error) :: err
    type (c_ptr) :: run, loss
    real (c_double), target :: x(2) = [1d0, -2d0]
    integer (c_int64_t) :: step = 0, length
    real (c_double) :: rate

    run = slurmdl_open (c_null_ptr, err)
    if (.not. c_associated (run)) call fail ()
    rate = slurmdl_float (run, c_string ('lr'), 0.1d0)
    length = min (slurmdl_length (run), 20_c_int64_t)
    if (slurmdl_protect (run, c_string ('x'), SLURMDL_F64, 1, [2_c_int64_t], c_loc (x)) /= 0) error stop 'protect'
    if (slurmdl_restore (run, step, err) < 0) call fail ()
    loss = slurmdl_metric (run, c_string ('training/loss'))
    do while (step < length .and. slurmdl_should_stop (run) == 0)
        step = step + 1
        x = x - rate * 2 * x
        if (slurmdl_log_to (loss, step, sum (x**2)) /= 0) error stop 'log'
        if (slurmdl_log_vector (run, c_string ('x'), step, 2_c_size_t, x) /= 0) error stop 'vector'
        if (mod (step, 10_c_int64_t) == 0) then
            if (slurmdl_save (run, step, err) /= 0) call fail ()
        end if
    end do
    print '(i0, 1x, es10.3)', step, sum (x**2)
    if (slurmdl_close (run) /= 0) error stop 'close'

contains

    subroutine fail ()
        print '(a)', slurmdl_message (err)
        error stop 1
    end subroutine
end program
