/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a site: its configuration, and the findings. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "launcher/node/slurm_conf.h"

enum doctor_severity {
    FINE,
    HINT,   /* worth to know */
    CHANGE, /* something is lost until it is changed */
    BROKEN, /* jobs fail, or the plugin does nothing */
    DOCTOR_SEVERITIES
};
extern const char *const doctor_severity_names[];

struct doctor_finding {
    const char *check;
    enum doctor_severity severity;
    char *where; /* file and line, or what was looked at; "" */
    char *what;  /* and what to do */
};

struct site;

struct doctor_check {
    const char *name;
    void (*run) (struct site *s);
    bool slurm; /* it needs s->config */
    /* the worst finding that it makes; dl-doctor(1) has the list */
    enum doctor_severity severity;
};

enum { DOCTOR_TEXT = 512, DOCTOR_SAID = 4096, SITE_WHERE = PATH_MAX + 32 };

/* A line of plugstack.conf that is about one plugin. */
struct stack_line {
    const struct conf_line *at;
    char word[16];         /* required, optional; "": none */
    char plugin[PATH_MAX]; /* with its folder */
    const char *arguments; /* the rest of the line */
};

struct site {
    const char *root;       /* "" for this host */
    char *config;           /* scontrol show config; NULL: not available */
    bool alone;             /* it was made of slurm.conf: the controller is not there */
    char why[DOCTOR_TEXT];  /* why there is no answer of scontrol's */
    char said[DOCTOR_SAID]; /* by srun --version and the plugins in it */
    char version[32];       /* that srun's */
    char conf_path[PATH_MAX];
    struct conf slurm;  /* slurm.conf, as far as it can be read */
    struct conf cgroup; /* cgroup.conf */
    struct conf gres;
    struct conf stack; /* plugstack.conf */
    char stack_path[PATH_MAX];
    struct stack_line plugin; /* of dl.so; plugin.at NULL: there is none */
    int plugins;              /* how many lines there are of it */
    bool run;                 /* start a step */
    const struct doctor_check *check;
    struct doctor_finding *findings;
    size_t nfindings;
};

/* Ask slurmctld for its configuration, unless s->config is set, and read the
 * configuration files.  Without its answer slurm.conf alone has to do.
 */
void site_read (struct site *s);

/* Release it and all that site_read() and site_report() have put there. */
void site_free (struct site *s);

/* The value of a parameter in scontrol show config, or `otherwise' if it is
 * not there, "(null)" or empty.
 */
const char *site_value (const struct site *s, const char *key, char *buf, size_t size,
                        const char *otherwise);
/* The number with which it begins; -1. */
long site_number (const struct site *s, const char *key);

/* The path of a file in PluginDir, a list of folders: the first that has it,
 * else that of the first folder.
 */
void site_plugin_path (const struct site *s, const char *name, char path[PATH_MAX]);

/* "FILE:LINE" of the parameter, else of where it belongs; until the next call.
 */
const char *site_here (const struct site *s, const char *key);

/* Is the word in its value, whatever the case of the letters? */
bool site_has (const struct site *s, const char *key, const char *word);

/* Add a finding of the check that runs. */
__attribute__ ((format (printf, 4, 5))) void site_report (struct site *s,
                                                          enum doctor_severity severity,
                                                          const char *where, const char *fmt, ...);

/* A finding about a parameter: 'fine' if it is good, else 'advice', as severe
 * as the check can be.
 */
void site_expect (struct site *s, const char *key, bool good, const char *fine, const char *advice);
