/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: what they learn about the worker and the ranks, and stop requests. */
#include "runtime/slurmdl.h"
#include "tests/ranks.h"
#include "tests/runtime/unattended.h"

UNATTENDED_CASE (run_without_a_worker)
{
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    struct slurmdl *next = slurmdl_open (in_dir ("run"), NULL);
    struct slurmdl_error err;

    assert_string_equal (slurmdl_dir (run), in_dir ("run/a.1"));
    assert_string_equal (slurmdl_dir (next), in_dir ("run/a.2"));
    assert_int_equal (slurmdl_attempt (next), 2);
    assert_int_equal (slurmdl_trial (run), 0);
    assert_string_equal (slurmdl_experiment (run), "");
    assert_true (slurmdl_length (run) == INT64_MAX);
    assert_int_equal (slurmdl_close (next), 0);
    assert_int_equal (slurmdl_close (run), 0);
    assert_int_equal (slurmdl_close (NULL), 0);
    assert_null (slurmdl_open ("/proc", &err));
    assert_non_null (strstr (err.text, "/proc: cannot create the folder of "));
}

UNATTENDED_CASE (a_program_may_go_elsewhere)
{
    struct slurmdl *run;
    float x = 1;

    assert_int_equal (chdir (in_dir ("")), 0);
    run = slurmdl_open ("run", NULL);
    assert_non_null (run);
    assert_int_equal (chdir ("/"), 0);
    slurmdl_protect (run, "x", SLURMDL_F32, 0, NULL, &x);
    assert_int_equal (slurmdl_save (run, 1, NULL), 0);
    assert_int_equal (slurmdl_close (run), 0);
    assert_int_equal (access (in_dir ("run/a.1/ckpt/00000001.h5"), F_OK), 0);
}

UNATTENDED_CASE (run_of_a_worker)
{
    struct slurmdl *run;

    mkdir (in_dir ("a.7"), 0777);
    setenv ("DL_ATTEMPT_DIR", in_dir ("a.7"), 1);
    setenv ("DL_EXPERIMENT", "e", 1);
    set_number ("DL_ATTEMPT", 7);
    set_number ("DL_TRIAL", 3);
    set_number ("DL_LENGTH", 27);
    set_number ("DL_SEED", 99);
    setenv ("DL_HP_lr", "0.5", 1);
    setenv ("DL_HP_opt_k", "12", 1);
    run = slurmdl_open (in_dir ("elsewhere"), NULL);
    assert_string_equal (slurmdl_dir (run), in_dir ("a.7"));
    assert_int_equal (slurmdl_attempt (run), 7);
    assert_int_equal (slurmdl_trial (run), 3);
    assert_int_equal (slurmdl_length (run), 27);
    assert_int_equal (slurmdl_seed (run), 99);
    assert_true (slurmdl_float (run, "lr", 1) == 0.5);
    assert_int_equal (slurmdl_int (run, "opt.k", 1), 12);
    assert_int_equal (slurmdl_int (run, "lr", 1), 1); /* not an integer */
    assert_true (slurmdl_float (run, "absent", 7) == 7);
    assert_string_equal (slurmdl_string (run, "opt.k", ""), "12");
    assert_null (slurmdl_hp (run, "absent"));
    assert_int_equal (errno, ENOENT);
    assert_int_equal (access (in_dir ("elsewhere"), F_OK), -1);
    slurmdl_close (run);
}

/* Slurm's step IDs of a batch script and of an interactive step. */
static void no_ranks (void)
{
    static const char *const steps[] = { "-5", "-6", "4294967290", "4294967291" };

    for (size_t i = 0; i < COUNT (steps); i++) {
        struct slurmdl *run;

        setenv ("SLURM_STEP_ID", steps[i], 1);
        run = slurmdl_open (in_dir ("run"), NULL);
        assert_int_equal (slurmdl_rank (run), 0);
        assert_int_equal (slurmdl_size (run), 1);
        slurmdl_close (run);
    }
}

UNATTENDED_CASE (ranks_of_a_step)
{
    struct slurmdl *run;
    float x = 1;

    setenv ("SLURM_STEP_ID", "0", 1);
    set_number ("SLURM_PROCID", 2);
    set_number ("SLURM_NTASKS", 4);
    run = slurmdl_open (in_dir ("run"), NULL);
    assert_int_equal (slurmdl_rank (run), 2);
    assert_int_equal (slurmdl_size (run), 4);
    slurmdl_protect (run, "x", SLURMDL_F32, 0, NULL, &x);
    assert_int_equal (slurmdl_log (run, "x", 1, 1), 0);
    assert_int_equal (slurmdl_save (run, 1, NULL), 0);
    assert_int_equal (access (in_dir ("run/a.1"), F_OK), -1); /* rank 2 writes nothing */
    slurmdl_close (run);
    no_ranks ();
    unsetenv ("SLURM_STEP_ID"); /* the SLURM_PROCID of a batch script is stale */
    run = slurmdl_open (in_dir ("run"), NULL);
    assert_int_equal (slurmdl_rank (run), 0);
    slurmdl_close (run);
    set_number ("RANK", 1);
    set_number ("WORLD_SIZE", 2);
    run = slurmdl_open (in_dir ("run"), NULL);
    assert_int_equal (slurmdl_rank (run), 1);
    slurmdl_close (run);
}

UNATTENDED_CASE (stop_requests)
{
    struct slurmdl *run = slurmdl_open (in_dir ("run"), NULL);
    struct sigaction sa;

    assert_false (slurmdl_should_stop (run));
    raise (SIGTERM);
    assert_true (slurmdl_should_stop (run));
    slurmdl_close (run);
    sigaction (SIGTERM, NULL, &sa);
    assert_true (sa.sa_handler == SIG_DFL);
    /* a handler that the program set stays */
    signal (SIGUSR2, SIG_IGN);
    run = slurmdl_open (in_dir ("run"), NULL);
    sigaction (SIGUSR2, NULL, &sa);
    assert_true (sa.sa_handler == SIG_IGN);
    slurmdl_close (run);
    signal (SIGUSR2, SIG_DFL);
}

RUN_CASES ()
