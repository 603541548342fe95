/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's configuration, as dl doctor reads it: files below a root, and CONFIG, the output of
 * scontrol.
 */
#include "launcher/node/doctor.h"
#include "tests/fuzz/fuzz.h"

/* The checks that neither query Slurm nor start a process. */
static void (*const checks[]) (struct site *) = {
    doctor_plugstack,  doctor_plugin_line, doctor_plugin_file, doctor_order,
    doctor_profiles,   doctor_ports,       doctor_task_plugin, doctor_proctrack,
    doctor_cgroup,     doctor_select,      doctor_gres,        doctor_tres,
    doctor_kill,       doctor_preemption,  doctor_requeue,     doctor_array,
    doctor_unkillable, doctor_limits,      doctor_prolog,      doctor_gather,
    doctor_health,     doctor_shm,         doctor_remove_ipc,  doctor_plugin_arguments,
};

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const struct doctor_check check = { .name = "check" };
    struct site *s = calloc (1, sizeof (*s));

    if (!s)
        return 0;
    s->check = &check;
    s->root = fuzz_files ("root", data, size, NULL);
    if (!(s->config = doctor_read (s->root, "CONFIG")))
        s->config = strdup ("");
    site_read (s);
    for (size_t i = 0; i < sizeof (checks) / sizeof (*checks); i++)
        checks[i](s);
    site_free (s);
    return 0;
}
