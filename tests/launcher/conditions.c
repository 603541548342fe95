/* SPDX-License-Identifier: Apache-2.0 */
/* Check every transition of the state machine of jobs, trials and steps, and the outcome of jobs
 * with roles in the test cases of Kubeflow's training operator.
 */
#include "launcher/sweep/conditions.h"
#include "launcher/job/job.h"
#include "tests/folder.h"

/* ---- transitions ---- */

/* Each row is a state, each column an event in the order of enum life_event_kind, and each cell the
 * new state.  "-": the event is ignored.  C created, R running, B restarting, Z suspended, S
 * succeeded, F failed.
 */
static const char letters[LIFE_CONDITIONS + 1] = "CRBZSF";
static const struct {
    enum life_condition from;
    const char *to;
} cells[LIFE_CONDITIONS + 1] = {
    { LIFE_CONDITIONS, "C-------" },     { CONDITION_CREATED, "-RBZ-SF-" },
    { CONDITION_RUNNING, "-RBZ-SF-" },   { CONDITION_RESTARTING, "-RBZ-SF-" },
    { CONDITION_SUSPENDED, "---ZCSF-" }, { CONDITION_SUCCEEDED, "-------B" },
    { CONDITION_FAILED, "-------B" },
};

CASE (every_cell)
{
    for (size_t i = 0; i < COUNT (cells); i++)
        for (int k = 0; k < LIFE_EVENTS; k++) {
            enum life_condition to = condition_after (cells[i].from, (enum life_event_kind)k);
            assert_int_equal (to == LIFE_CONDITIONS ? '-' : letters[to], cells[i].to[k]);
        }
}

static bool apply (struct conditions *c, enum life_event_kind kind, double time,
                   enum condition_reason reason)
{
    return conditions_apply (c, &(struct life_event){ kind, time, reason, "a message" });
}

/* Bring it into a state with as few events as possible. */
static void lead (struct conditions *c, enum life_condition to)
{
    static const enum life_event_kind ways[LIFE_CONDITIONS][3] = {
        [CONDITION_CREATED] = { LIFE_CREATED, LIFE_EVENTS },
        [CONDITION_RUNNING] = { LIFE_CREATED, LIFE_STARTED, LIFE_EVENTS },
        [CONDITION_RESTARTING] = { LIFE_CREATED, LIFE_BROKEN, LIFE_EVENTS },
        [CONDITION_SUSPENDED] = { LIFE_CREATED, LIFE_SUSPENDED, LIFE_EVENTS },
        [CONDITION_SUCCEEDED] = { LIFE_CREATED, LIFE_SUCCEEDED, LIFE_EVENTS },
        [CONDITION_FAILED] = { LIFE_CREATED, LIFE_FAILED, LIFE_EVENTS },
    };

    *c = (struct conditions){ .is_there = false };
    for (int i = 0; i < 3 && to < LIFE_CONDITIONS && ways[to][i] < LIFE_EVENTS; i++)
        assert_true (apply (c, ways[to][i], i + 1, REASON_CREATED));
}

/* The same transitions, but check the list of conditions afterwards. */
CASE (every_cell_applied)
{
    for (size_t i = 0; i < COUNT (cells); i++)
        for (int k = 0; k < LIFE_EVENTS; k++) {
            struct conditions c;
            const char *to = strchr (letters, cells[i].to[k]);
            int others = 0;
            lead (&c, cells[i].from);
            assert_int_equal (apply (&c, (enum life_event_kind)k, 9, REASON_HANG), to != NULL);
            for (int x = CONDITION_RUNNING; x < LIFE_CONDITIONS; x++)
                others += c.list[x].is_true;
            if (to) {
                enum life_condition now = (enum life_condition) (to - letters);
                assert_int_equal (c.last, now);
                assert_true (c.list[now].is_true);
                assert_int_equal (others, now != CONDITION_CREATED);
                if (now != CONDITION_CREATED)
                    assert_int_equal (c.list[now].reason, REASON_HANG);
            } else
                assert_true (others <= 1);
            assert_int_equal (c.list[CONDITION_CREATED].is_true, c.is_there);
            if (c.is_there)
                assert_true (c.list[CONDITION_CREATED].time
                             == (k == LIFE_CREATED && i == 0 ? 9 : 1));
            conditions_free (&c);
        }
}

/* A condition that is no longer true keeps its reason, and its time is that of the change. */
CASE (what_was)
{
    struct conditions c;
    json_t *list;
    const char *message;

    lead (&c, CONDITION_RUNNING);
    assert_true (apply (&c, LIFE_BROKEN, 5, REASON_NODE_LOST));
    assert_false (c.list[CONDITION_RUNNING].is_true);
    assert_true (c.list[CONDITION_RUNNING].time == 5);
    assert_int_equal (c.list[CONDITION_RUNNING].reason, REASON_CREATED);
    /* repeating an event changes nothing, unless the reason differs */
    assert_false (apply (&c, LIFE_BROKEN, 6, REASON_NODE_LOST));
    assert_true (c.list[CONDITION_RESTARTING].time == 5);
    assert_true (apply (&c, LIFE_BROKEN, 7, REASON_HANG));
    assert_true (apply (&c, LIFE_STARTED, 8, REASON_ATTEMPT_STARTED));
    assert_true (apply (&c, LIFE_FAILED, 9, REASON_GIVEN_UP));
    assert_false (apply (&c, LIFE_SUCCEEDED, 10, REASON_TRAINING_COMPLETED));

    list = conditions_json (&c);
    assert_int_equal (json_array_size (list), 4);
    assert_int_equal (json_unpack (json_array_get (list, 3), "{s:s}", "message", &message), 0);
    assert_string_equal (message, "a message");
    for (size_t i = 0; i < 4; i++) {
        static const char *const types[] = { "Created", "Restarting", "Running", "Failed" };
        const char *type;
        int is_true;
        assert_int_equal (
            json_unpack (json_array_get (list, i), "{s:s, s:b}", "type", &type, "status", &is_true),
            0);
        assert_string_equal (type, types[i]);
        assert_int_equal (is_true, i == 0 || i == 3);
    }
    json_decref (list);
    conditions_free (&c);
}

/* If a failure turns out to be the last one, Restarting goes back to what it was before. */
CASE (last_failure)
{
    const struct condition_entry *again;
    struct conditions c;

    lead (&c, CONDITION_RUNNING);
    assert_true (apply (&c, LIFE_BROKEN, 5, REASON_HANG));
    assert_true (apply (&c, LIFE_FAILED, 5, REASON_GIVEN_UP));
    assert_null (c.list[CONDITION_RESTARTING].reason);
    assert_true (c.list[CONDITION_RUNNING].time == 5);
    conditions_free (&c);

    lead (&c, CONDITION_RUNNING);
    again = &c.list[CONDITION_RESTARTING];
    assert_true (apply (&c, LIFE_BROKEN, 5, REASON_NODE_LOST));
    assert_true (apply (&c, LIFE_STARTED, 6, REASON_ATTEMPT_STARTED));
    assert_true (apply (&c, LIFE_BROKEN, 7, REASON_HANG));
    assert_true (apply (&c, LIFE_FAILED, 7, REASON_GIVEN_UP));
    assert_true (again->time == 6 && !again->is_true);
    assert_int_equal (again->reason, REASON_NODE_LOST);
    assert_string_equal (again->message, "a message");
    conditions_free (&c);

    /* it did restart, if only at the same time; or it was suspended in between */
    lead (&c, CONDITION_RUNNING);
    assert_true (apply (&c, LIFE_BROKEN, 5, REASON_HANG));
    assert_true (apply (&c, LIFE_STARTED, 5, REASON_ATTEMPT_STARTED));
    assert_int_equal (again->reason, REASON_HANG);
    assert_true (apply (&c, LIFE_BROKEN, 6, REASON_HANG));
    assert_true (apply (&c, LIFE_SUSPENDED, 7, REASON_EXPERIMENT_PAUSED));
    assert_true (again->time == 7 && !again->is_true);
    conditions_free (&c);
}

/* ---- roles ---- */

#define TF(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }
#define CHIEF(ok, bad)                                                                             \
    {                                                                                              \
        "chief", 1, RESTART_NEVER, NULL, ok, bad, ok, 1                                            \
    }
#define CHIEF_CODE(bad, code)                                                                      \
    {                                                                                              \
        "chief", 1, RESTART_EXIT_CODE, NULL, 0, bad, false, code                                   \
    }
#define WORKERS(ok, bad, w0)                                                                       \
    {                                                                                              \
        "worker", 4, RESTART_NEVER, NULL, ok, bad, w0, 1                                           \
    }
#define SERVERS(bad)                                                                               \
    {                                                                                              \
        "ps", 2, RESTART_NEVER, NULL, 0, bad, false, 1                                             \
    }

/* From status_test.go and the documentation of the training operator, release 1.9. */
/* clang-format off */
static const struct {
    const char *what;
    struct role_members roles[4];
    enum success_policy success;
    enum life_event_kind kind;
    enum condition_reason reason;
    const char *role;
} cases[] = {
    { "chief ok", TF (CHIEF (1, 0), WORKERS (0, 0, false), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_SUCCEEDED, REASON_CHIEF_SUCCEEDED, "chief" },
    { "chief runs", TF (CHIEF (0, 0), WORKERS (4, 0, true), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_STARTED, REASON_ATTEMPT_STARTED, NULL },
    { "chief failed", TF (CHIEF (0, 1), WORKERS (0, 0, false), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_FAILED, REASON_ROLE_FAILED, "chief" },
    { "chief failed, its status may be tried again", TF (CHIEF_CODE (1, 130), WORKERS (0, 0, false), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_BROKEN, REASON_RANK_DIED, "chief" },
    { "chief failed, its status may not", TF (CHIEF_CODE (1, 1), WORKERS (0, 0, false), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_FAILED, REASON_ROLE_FAILED, "chief" },
    { "no chief, worker 0 ok, 3 active", TF (WORKERS (1, 0, true), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_SUCCEEDED, REASON_CHIEF_SUCCEEDED, "worker" },
    { "no chief, worker 1 ok, 3 active", TF (WORKERS (1, 0, false), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_STARTED, REASON_ATTEMPT_STARTED, NULL },
    { "the same, all workers", TF (WORKERS (1, 0, true), SERVERS (0)),
      SUCCESS_ALL_WORKERS, LIFE_STARTED, REASON_ATTEMPT_STARTED, NULL },
    { "the same, any", TF (WORKERS (1, 0, false), SERVERS (0)),
      SUCCESS_ANY, LIFE_SUCCEEDED, REASON_ANY_WORKER_SUCCEEDED, "worker" },
    { "all workers, 4 ok", TF (WORKERS (4, 0, true), SERVERS (0)),
      SUCCESS_ALL_WORKERS, LIFE_SUCCEEDED, REASON_ALL_WORKERS_SUCCEEDED, "worker" },
    { "2 running, 2 failed", TF (WORKERS (0, 2, false), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_FAILED, REASON_ROLE_FAILED, "worker" },
    { "2 ok, 2 failed", TF (WORKERS (2, 2, false), SERVERS (0)),
      SUCCESS_ALL_WORKERS, LIFE_FAILED, REASON_ROLE_FAILED, "worker" },
    { "chief running, 1 PS failed", TF (CHIEF (0, 0), WORKERS (0, 0, false), SERVERS (1)),
      SUCCESS_DEFAULT, LIFE_FAILED, REASON_ROLE_FAILED, "ps" },
    { "chief ok, 4 workers failed", TF (CHIEF (1, 0), WORKERS (0, 4, false), SERVERS (0)),
      SUCCESS_DEFAULT, LIFE_SUCCEEDED, REASON_CHIEF_SUCCEEDED, "chief" },
    { "all workers, but there is a chief", TF (CHIEF (0, 0), WORKERS (4, 0, true), SERVERS (0)),
      SUCCESS_ALL_WORKERS, LIFE_STARTED, REASON_ATTEMPT_STARTED, NULL },
    { "a server that ends well and always begins again",
      TF (CHIEF (0, 0), { "ps", 2, RESTART_ALWAYS, NULL, 1, 0, true, 0 }),
      SUCCESS_DEFAULT, LIFE_BROKEN, REASON_RANK_DIED, "ps" },
    { "on failure, whatever the status",
      TF ({ "worker", 2, RESTART_ON_FAILURE, NULL, 0, 1, false, 1 }),
      SUCCESS_DEFAULT, LIFE_BROKEN, REASON_RANK_DIED, "worker" },
    { "the launcher of MPI", TF ({ "launcher", 1, RESTART_NEVER, NULL, 1, 0, true, 0 }, WORKERS (0, 0, false)),
      SUCCESS_DEFAULT, LIFE_SUCCEEDED, REASON_CHIEF_SUCCEEDED, "launcher" },
};
/* clang-format on */

CASE (operators_cases)
{
    for (size_t i = 0; i < COUNT (cases); i++) {
        size_t n = 0;
        struct verdict v;
        while (cases[i].roles[n].name)
            n++;
        v = job_judge (cases[i].roles, n, cases[i].success);
        if (v.kind != cases[i].kind)
            fail_msg ("%s: %s", cases[i].what, life_event_names[v.kind]);
        assert_int_equal (v.reason, cases[i].reason);
        assert_string_equal (v.role ? v.role : "none", cases[i].role ? cases[i].role : "none");
    }
}

/* From train_util_test.go of the training operator. */
CASE (exit_codes)
{
    static const struct exit_range own[] = { { 3, 3, true }, { 137, 137, false }, { 0, 0, false } };
    static const int permanent[] = { 1, 2, 3, 126, 127 },
                     retryable[] = { 128, 130, 137, 138, 143, 255 };

    for (size_t i = 0; i < COUNT (permanent); i++)
        assert_false (role_begins_again (RESTART_EXIT_CODE, NULL, permanent[i]));
    for (size_t i = 0; i < COUNT (retryable); i++)
        assert_true (role_begins_again (RESTART_EXIT_CODE, NULL, retryable[i]));
    assert_true (role_begins_again (RESTART_EXIT_CODE, own, 3));
    assert_false (role_begins_again (RESTART_EXIT_CODE, own, 137));
    assert_false (role_begins_again (RESTART_EXIT_CODE, own, 138));
    assert_true (role_begins_again (RESTART_ALWAYS, NULL, 1));
    assert_true (role_begins_again (RESTART_ON_FAILURE, NULL, 1));
    assert_false (role_begins_again (RESTART_NEVER, NULL, 137));
}

/* An evaluator restarts alone, after the exits that its policy restarts. */
CASE (evaluators_alone)
{
    static struct exit_range own[] = {
        { 3, 3, true }, { 137, 137, false }, { 138, 255, true }, { 0, 0, false }
    };
    struct job_role roles[] = { { .name = (char *)"chief", .count = 1 },
                                { .name = (char *)"worker", .count = 2 },
                                { .name = (char *)"evaluator", .count = 2 } };
    struct job_settings j = { .roles = roles, .nroles = 3 };
    static const struct {
        enum restart_policy restart;
        struct exit_range *ranges;
        const char *text;
    } policies[] = {
        { RESTART_ON_FAILURE, NULL, "3-4:1-255" },
        { RESTART_ALWAYS, NULL, "3-4:0-255" },
        { RESTART_EXIT_CODE, NULL, "3-4:128-255" },
        { RESTART_EXIT_CODE, own, "3-4:3-3,138-255" },
        { RESTART_NEVER, NULL, "none" },
    };

    for (size_t i = 0; i < COUNT (policies); i++) {
        char *text;
        roles[2].restart = policies[i].restart;
        roles[2].ranges = policies[i].ranges;
        text = job_alone (&j);
        assert_string_equal (text ? text : "none", policies[i].text);
        free (text);
    }
    j.nroles = 2;
    assert_null (job_alone (&j));
}

/* ---- the manual ---- */

static void print_changes (FILE *f)
{
    for (const struct condition_change *c = condition_changes; c->from; c++) {
        const char *comma = "";
        fprintf (f, "%-10s ", life_event_names[c->kind]);
        for (int i = 0; i <= LIFE_CONDITIONS; i++)
            if (c->from >> i & 1) {
                fprintf (f, "%s%s", comma, i < LIFE_CONDITIONS ? condition_names[i] : "(nothing)");
                comma = ", ";
            }
        fprintf (f, ": %s\n", condition_names[c->to]);
    }
}

static void print_reasons (FILE *f)
{
    for (int i = REASON_NONE + 1; i < CONDITION_REASONS; i++) {
        const struct condition_reason_row *r = &condition_reasons[i];
        assert_int_equal (condition_reason_read (r->word), i);
        fprintf (f, ".TP\n.B %s\n%s\n", r->word, r->text);
    }
}

static void is_in_manual (void (*print) (FILE *f))
{
    const char *srcdir = getenv ("srcdir");
    char path[4096], *table = NULL, *manual;
    size_t size, n;
    FILE *f = open_memstream (&table, &size);

    assert_non_null (f);
    print (f);
    fclose (f);
    snprintf (path, sizeof (path), "%s/doc/dl-show.1", srcdir ? srcdir : ".");
    assert_non_null (f = fopen (path, "r"));
    assert_non_null (manual = calloc (1, 1 << 20));
    n = fread (manual, 1, (1 << 20) - 1, f);
    fclose (f);
    assert_true (n > 0);
    if (!strstr (manual, table))
        fail_msg ("doc/dl-show.1 does not have this:\n%s", table);
    free (manual);
    free (table);
}

CASE (manual)
{
    is_in_manual (print_changes);
    is_in_manual (print_reasons);
}

RUN_CASES ()
