/* SPDX-License-Identifier: Apache-2.0 */
/* A flow: steps that wait for each other, as its file describes them. */
#pragma once

#include <jansson.h>
#include <libconfig.h>

#include "launcher/config/code_settings.h"
#include "launcher/config/diagnostics.h"
#include "runtime/base/error.h"

struct experiment;
struct software;
struct problems;

enum { FLOW_STEPS_MAX = 1000, FLOW_WIDTH_MAX = 1000, FLOW_NAME_MAX = 64 };

/* How a step waits for another one: until it has succeeded, has ended in any
 * way, or until its task of the same number has succeeded.
 */
enum flow_wait { AFTER_OK, AFTER_ANY, AFTER_EACH };

struct flow_link {
    size_t step;
    enum flow_wait wait;
};

struct flow_output {
    char *name;
    char *path; /* below the attempt's folder, or absolute; with {names} */
};

struct flow_step {
    char *name;
    struct origin origin;
    struct experiment *exp; /* its entrypoint, resources and environment */
    char **after, **after_any, **after_each;
    char *when;
    char **inputs; /* files from outside the flow */
    char **values; /* what it reports, besides files */
    char **code;   /* patterns: the part of the code that it depends on */
    char *sweep;   /* an experiment file, instead of an entrypoint */
    char *working_folder;
    enum working_folder work; /* WORK_TRIAL: of the task */
    char **set;               /* KEY=VALUE for that file */
    int64_t retries;
    bool cache, on_exit;
    struct flow_output *outputs;
    size_t noutputs;
    json_t *foreach;         /* as written; NULL: it is one task */
    json_t *items;           /* a list; NULL: known when 'source' has ended */
    char *source_value;      /* the value of 'source' that is the list */
    struct flow_link *links; /* all that it waits for; the first ones ... */
    size_t nlinks;
    long source; /* step, -1: none */
};

struct flow {
    char *file; /* for messages */
    char *text; /* what it says, as one file */
    struct experiment *base;
    json_t *params;
    bool is_frozen;
    struct flow_step *steps;
    size_t n;
    size_t *order; /* each behind those for which it waits; exit steps last */
};

/* Read and check a flow file.  'given' has values of parameters: strings
 * "NAME=VALUE" in a NULL-ended list, or a JSON object, or neither.  'frozen':
 * it is a flow's own copy, whose folder is 'dir'.  All problems go to 'p'.
 * Returns NULL on failure, with errno.
 */
struct flow *flow_read (const char *path, const char *dir, char *const *given, const json_t *values,
                        struct problems *p);
void flow_free (struct flow *f);

/* flow_read() of a file that the user names; NULL with errno, after a line for
 * each mistake.  With 'opt' its containers and environments must be there.
 */
struct flow_options;
struct flow *flow_file_read (const char *path, char *const *given, const struct flow_options *opt);

/* Add the links and the order, and check names, conditions and outputs. */
void flow_check (struct flow *f, const config_t *cf, struct problems *p);

/* A step's own container and environment, or that of all; a sweep has that of
 * its experiment file.
 */
const struct software *flow_software_of (const struct flow *f, const struct flow_step *s);

/* Check what a flow file says of them, without a look at the file system. */
void flow_check_software (struct flow *f, const config_t *cf, struct problems *p);

/* Look whether they are there, each once.  With 'local' the runtime must be on
 * this machine, too; with 'loads' they are loaded, which runs code that the
 * file names.
 */
void flow_find_software (const struct flow *f, bool local, bool loads, struct problems *p);

/* What tasks of a step depend on, for the key of the cache; NULL: nothing. */
json_t *flow_software_key (const struct flow *f, const struct flow_step *s);

/* The step of that name; NULL: there is none. */
struct flow_step *flow_step_find (const struct flow *f, const char *name);
size_t flow_step_number (const struct flow *f, const struct flow_step *s);

/* The values of a sweep that its file need not name: "checkpoint", ... */
bool flow_step_has (const struct flow_step *s, const char *value);

/* Call 'f' for each {name} in the texts of a step, until it returns nonzero,
 * which is returned.
 */
typedef int (*flow_name_f) (const char *name, const char *where, void *arg);
int flow_each_name (const struct flow_step *s, flow_name_f f, void *arg);

/* Whether a text has a {name}. */
bool flow_has_name (const char *text);

/* 'text' with the values of the parameters, which are known when a file is
 * checked; the caller frees it.
 */
char *flow_with_params (const struct flow *f, const char *text);

/* Whether a condition holds; -1 with 'err'.  'value' gives the text that a
 * {name} stands for, which is freed here, or NULL with its 'err'.
 */
typedef char *(*flow_value_f) (const char *name, void *arg, struct slurmdl_error *err);
int flow_condition_holds (const char *text, flow_value_f value, void *arg, bool *holds,
                          struct slurmdl_error *err);
