/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: the configuration of a site, findings and checks. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* A line of a configuration file or of a file that it includes.  Comments are skipped. */
struct conf_line {
    char *file;
    int line;
    char *text; /* without white space around it, and without a comment */
};

struct conf {
    struct conf_line *list;
    size_t n;
};

/* Read a regular file below 'root', at most DOCTOR_FILE bytes of it.  The caller frees
 * the text.  Returns NULL with errno on failure.
 */
char *doctor_read (const char *root, const char *path);

/* Add the lines of 'path' and of the files that its "include" lines name.  As in
 * plugstack.conf, these may contain wildcards and are relative to the including file.
 * Returns -1 with errno if 'path' itself cannot be read.
 */
int conf_read (struct conf *c, const char *root, const char *path);

/* Release the lines; 'c' is empty afterwards. */
void conf_free (struct conf *c);

/* Return the last line KEY=VALUE, ignoring case, or NULL. */
const struct conf_line *conf_find (const struct conf *c, const char *key);

enum doctor_severity {
    FINE,
    HINT,   /* worth knowing */
    CHANGE, /* users lose something until an administrator changes it */
    BROKEN, /* jobs fail, or the plugin does nothing */
    DOCTOR_SEVERITIES
};
extern const char *const doctor_severity_names[];

struct doctor_finding {
    const char *check;
    enum doctor_severity severity;
    char *where; /* file and line, or what was examined; may be "" */
    char *what;  /* the finding and what to do about it */
};

struct site;

struct doctor_check {
    const char *name;
    void (*run) (struct site *s);
    bool slurm; /* needs s->config */
    /* the most severe finding that it can make; dl-doctor(1) lists them */
    enum doctor_severity severity;
};

enum { DOCTOR_TEXT = 512, DOCTOR_SAID = 4096, SITE_WHERE = PATH_MAX + 32 };

/* A line of plugstack.conf for a plugin. */
struct stack_line {
    const struct conf_line *at;
    char word[16];         /* "required" or "optional"; "" if there is none */
    char plugin[PATH_MAX]; /* path of the plugin */
    const char *arguments; /* the rest of the line */
};

struct site {
    const char *root;       /* "" for this host */
    char *config;           /* scontrol show config; NULL: not available */
    bool alone;             /* 'config' comes from slurm.conf: slurmctld did not answer */
    char why[DOCTOR_TEXT];  /* why scontrol failed */
    char said[DOCTOR_SAID]; /* output of srun --version and of its plugins */
    char version[32];       /* srun's version */
    char conf_path[PATH_MAX];
    struct conf slurm;  /* slurm.conf, as far as it can be read */
    struct conf cgroup; /* cgroup.conf */
    struct conf gres;
    struct conf stack; /* plugstack.conf */
    char stack_path[PATH_MAX];
    struct stack_line plugin; /* the line of dl.so; plugin.at is NULL if there is none */
    int plugins;              /* number of lines for dl.so */
    bool run;                 /* start a step */
    const struct doctor_check *check;
    struct doctor_finding *findings;
    size_t nfindings;
};

/* Read the configuration files and, unless s->config is set, ask slurmctld for its
 * configuration.  If slurmctld does not answer, fall back to slurm.conf.
 */
void site_read (struct site *s);

/* Free everything that site_read() and site_report() allocated. */
void site_free (struct site *s);

/* Return the value of a parameter of scontrol show config, or 'otherwise' if it is
 * missing, "(null)" or empty.
 */
const char *site_value (const struct site *s, const char *key, char *buf, size_t size,
                        const char *otherwise);

/* Return the number at the start of a parameter's value, or -1. */
long site_number (const struct site *s, const char *key);

/* Find a file in PluginDir, a list of directories.  If none has the file, return its
 * path in the first directory.
 */
void site_plugin_path (const struct site *s, const char *name, char path[PATH_MAX]);

/* Return "FILE:LINE" of a parameter or, if it is not set, the file to which it belongs.
 * The next call overwrites the text.
 */
const char *site_here (const struct site *s, const char *key);

/* Return whether a parameter's value contains a word, ignoring case. */
bool site_has (const struct site *s, const char *key, const char *word);

/* Add a finding of the current check. */
__attribute__ ((format (printf, 4, 5))) void site_report (struct site *s,
                                                          enum doctor_severity severity,
                                                          const char *where, const char *fmt, ...);

/* Add a finding about a parameter: 'fine' if 'good', else 'advice' with the severity of
 * the check.
 */
void site_expect (struct site *s, const char *key, bool good, const char *fine, const char *advice);

/* ---- checks of Slurm's configuration ---- */

/* Checks of how jobs end: KillWait, GraceTime for preemption, JobRequeue,
 * UnkillableStepTimeout, and limits that jobs inherit from the shell of the user who
 * submits them.
 */
void doctor_kill (struct site *s);
void doctor_preemption (struct site *s);
void doctor_requeue (struct site *s);
void doctor_unkillable (struct site *s);
void doctor_limits (struct site *s);

/* Checks of Slurm's configuration, named after the parameter in the table in doctor.c.
 * doctor_slurm() checks that slurmctld answers and that srun is of the same release,
 * doctor_ports() checks MpiParams=ports, and doctor_values() looks for values that no
 * site wants.
 */
void doctor_slurm (struct site *s);
void doctor_ports (struct site *s);
void doctor_srun_ports (struct site *s);
void doctor_values (struct site *s);
void doctor_task_plugin (struct site *s);
void doctor_proctrack (struct site *s);
void doctor_cgroup (struct site *s);
void doctor_select (struct site *s);
void doctor_gres (struct site *s);
void doctor_tres (struct site *s);
void doctor_array (struct site *s);
void doctor_prolog (struct site *s);
void doctor_gather (struct site *s);
void doctor_health (struct site *s);

/* ---- checks of the plugin and its line in plugstack.conf ---- */

/* Check that plugstack.conf is readable and has a line for dl.so, who may write to it,
 * the release that dl.so was built for, its arguments, the site's profiles, its order
 * relative to pyxis, and the command dl that it runs.
 */
void doctor_plugstack (struct site *s);
void doctor_plugin_line (struct site *s);
void doctor_plugin_file (struct site *s);
void doctor_plugin_release (struct site *s);
void doctor_plugin_arguments (struct site *s);
void doctor_profiles (struct site *s);
void doctor_order (struct site *s);
void doctor_command (struct site *s);

/* ---- checks of this host ---- */

/* Check that each GPU has a device file, nvidia_peermem for GPUDirect RDMA, the limits
 * on locked memory and open files, the size of /dev/shm, logind's RemoveIPC, the
 * address of the host's own name, and a step that is started.
 */
void doctor_gpus (struct site *s);
void doctor_peermem (struct site *s);
void doctor_memlock (struct site *s);
void doctor_nofile (struct site *s);
void doctor_shm (struct site *s);
void doctor_remove_ipc (struct site *s);
void doctor_hosts (struct site *s);
void doctor_step (struct site *s);
