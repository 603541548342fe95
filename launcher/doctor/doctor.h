/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: what is known of a host's Slurm, and the checks of it. */
#ifndef LAUNCHER_DOCTOR_DOCTOR_H
#define LAUNCHER_DOCTOR_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sys/settings.h"

/* ---- files ---- */

enum { DOCTOR_FILE = 1024 * 1024, DOCTOR_TEXT = 512, DOCTOR_SAID = 4096 };

/* A line that is no comment, of a file and what it includes. */
struct conf_line {
    char *file;
    int line;
    char *text; /* without white space around it, and without a comment */
};

struct conf {
    struct conf_line *list;
    size_t n;
};

/* Read a file of the system, at most DOCTOR_FILE bytes of a plain one, below
 * 'root'.  Returns NULL with errno; the caller frees it.
 */
char *doctor_read (const char *root, const char *path);

/* Add the lines of 'path' and of those that its "include" lines name (with
 * wildcards, as plugstack.conf; relative to 'dir').  Returns -1 with errno if
 * the first cannot be read.
 */
int conf_read (struct conf *c, const char *root, const char *path);
void conf_free (struct conf *c);

/* The last line KEY=VALUE, whatever the case of the letters; NULL: none. */
const struct conf_line *conf_find (const struct conf *c, const char *key);

/* ---- the host ---- */

/* A line of plugstack.conf that is about one plugin. */
struct stack_line {
    const struct conf_line *at;
    char word[16];         /* required, optional */
    char plugin[PATH_MAX]; /* with its folder */
    const char *arguments; /* the rest of the line */
};

struct site {
    const char *root;       /* "" for this host */
    char *config;           /* scontrol show config; NULL: not to be had */
    char why[DOCTOR_TEXT];  /* then: why */
    char said[DOCTOR_SAID]; /* by srun --version and the plugins in it */
    char conf_path[PATH_MAX];
    struct conf slurm;  /* slurm.conf, as far as it can be read */
    struct conf cgroup; /* cgroup.conf */
    struct conf gres;
    struct conf stack; /* plugstack.conf */
    char stack_path[PATH_MAX];
    struct stack_line plugin; /* of dl.so; plugin.at NULL: there is none */
    int plugins;              /* how many lines there are of it */
    bool run;                 /* start a step */
    const struct check *check;
    struct finding *findings;
    size_t n;
};

/* The value of a parameter in scontrol show config, or `otherwise' if it is
 * not there, "(null)" or empty.
 */
const char *site_value (const struct site *s,
                        const char *key,
                        char *buf,
                        size_t size,
                        const char *otherwise);
/* The number with which it begins; -1. */
long site_number (const struct site *s, const char *key);

/* "FILE:LINE" of the parameter, else of where it belongs. */
const char *
site_where (const struct site *s, const char *key, char *buf, size_t size);

/* ---- findings ---- */

enum severity {
    FINE,
    HINT,   /* worth to know */
    CHANGE, /* something is lost until it is changed */
    BROKEN, /* jobs fail, or the plugin does nothing */
    SEVERITIES
};
extern const char *const grade_names[];

struct finding {
    const char *check;
    enum severity severity;
    char *where; /* file and line, or what was looked at; "" */
    char *what;  /* and what to do */
};

/* Add a finding of the check that runs. */
__attribute__ ((format (printf, 4, 5))) void found (struct site *s,
                                                    enum severity severity,
                                                    const char *where,
                                                    const char *fmt,
                                                    ...);

struct check {
    const char *name;
    void (*run) (struct site *s);
    bool slurm; /* it needs s->config */
    /* the worst that it says; dl(1) has the list */
    enum severity severity;
};
extern const struct check doctor_checks[];

/* plugin.c */
void check_plugstack (struct site *s);
void check_plugin_line (struct site *s);
void check_plugin_file (struct site *s);
void check_plugin_release (struct site *s);
void check_plugin_arguments (struct site *s);
void check_profiles (struct site *s);
void check_order (struct site *s);
void check_command (struct site *s);

/* slurm.c */
void check_slurm (struct site *s);
void check_ports (struct site *s);
void check_task_plugin (struct site *s);
void check_proctrack (struct site *s);
void check_cgroup (struct site *s);
void check_select (struct site *s);
void check_gres (struct site *s);
void check_tres (struct site *s);
void check_kill (struct site *s);
void check_preemption (struct site *s);
void check_requeue (struct site *s);
void check_array (struct site *s);
void check_unkillable (struct site *s);
void check_limits (struct site *s);
void check_prolog (struct site *s);
void check_gather (struct site *s);
void check_health (struct site *s);

/* host.c */
void check_host_gpus (struct site *s);
void check_peermem (struct site *s);
void check_memlock (struct site *s);
void check_nofile (struct site *s);
void check_shm (struct site *s);
void check_remove_ipc (struct site *s);
void check_hosts (struct site *s);
void check_run (struct site *s);

/* The 32-bit number that a symbol of an ELF file has; nothing of the file is
 * run.  Returns -1 with errno (ENOEXEC: no ELF file of 64 bits, ENOENT: it has
 * no such symbol).
 */
int elf_number (const char *path, const char *symbol, uint32_t *number);

/* The command: an exit status of launcher/sys/say.h. */
int cmd_doctor (const struct settings *st);

#endif
