/* SPDX-License-Identifier: Apache-2.0 */
/* The folder through which elastic ranks agree on their membership. */
#include "runtime/comm/elastic/folder.h"
#include "tests/fuzz/fuzz.h"

static void visit (const struct elastic_member *m, const struct signs *v,
                   const struct elastic_member *self)
{
    volatile size_t n = strlen (m->unit);

    (void)n;
    signs_is_over (v, m, self);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *dir = fuzz_files ("world", data, size, fuzz_put_message);
    struct slurmdl_error err = { "" };
    struct elastic_member self;
    struct signs v = { 0 };
    struct generation *w;

    memset (&self, 0, sizeof (self));
    if (signs_look (&v, dir, &err) < 0)
        fuzz_failed (&err);
    for (long i = 0; i < v.nsigns; i++)
        visit (&v.signs[i].member, &v, &self);
    signs_waiting (&v, &self, 1);
    signs_count (&v, 1);
    for (uint64_t g = 1; g <= 3; g++) {
        if (!(w = folder_get_generation (dir, g)))
            continue;
        for (long i = 0; i < w->size; i++) {
            visit (&w->members[i], &v, &self);
            member_host (w, &w->members[i], &self);
        }
        free (w);
    }
    membership_has_done (dir, "1.1");
    signs_free (&v);
    return 0;
}
