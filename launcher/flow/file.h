/* SPDX-License-Identifier: Apache-2.0 */
/* The flow file: steps, and what they wait for. */
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

/* A step waits until another one succeeds, until it ends in any way, or until its task with the
 * same number succeeds.
 */
enum flow_wait { AFTER_OK, AFTER_ANY, AFTER_EACH };

struct flow_link {
    size_t step;
    enum flow_wait wait;
};

struct flow_output {
    char *name;
    char *path; /* relative to the attempt's folder, or absolute; may have {names} */
};

struct flow_step {
    char *name;
    struct origin origin;
    struct experiment *exp; /* its entrypoint, resources and environment */
    char **after, **after_any, **after_each;
    char *when;
    char **inputs; /* files from outside the flow */
    char **values; /* names of the values that it reports */
    char **code;   /* patterns of the code that it depends on */
    char *sweep;   /* an experiment file, instead of an entrypoint */
    char *working_folder;
    enum working_folder work; /* WORK_TRIAL: one for each task */
    char **set;               /* KEY=VALUE for that file */
    int64_t retries;
    int64_t hang; /* as worker.hang of an experiment */
    bool cache, on_exit;
    struct flow_output *outputs;
    size_t noutputs;
    json_t *foreach;         /* as written; NULL: the step is one task */
    json_t *items;           /* the list; NULL until 'source' has ended */
    char *source_value;      /* the value of 'source' that is the list */
    struct flow_link *links; /* the steps that it waits for */
    size_t nlinks;
    long source; /* a step, or -1 */
};

struct flow {
    char *file; /* its name in messages */
    char *text; /* its content, with included files */
    struct experiment *base;
    json_t *params;
    bool is_frozen;
    struct flow_step *steps;
    size_t n;
    size_t *order; /* topological; exit handlers come last */
};

/* Read and check a flow file.  The values of parameters come from 'given', a NULL-ended list of
 * "NAME=VALUE", or from the object 'values', or are the defaults.  'dir' is NULL unless the file is
 * a run's frozen copy of one in that folder.  Collects all problems in 'p'.  Returns NULL with
 * errno.
 */
struct flow *flow_read (const char *path, const char *dir, char *const *given, const json_t *values,
                        struct problems *p);
void flow_free (struct flow *f);

/* Read a file that the user names, and print a line for each problem; NULL with errno.  With 'opt',
 * its containers and environments must exist.
 */
struct flow_options;
struct flow *flow_file_read (const char *path, char *const *given, const struct flow_options *opt);

/* Fill in links and order, and check names, conditions and outputs. */
void flow_check (struct flow *f, const config_t *cf, struct problems *p);

/* A step's container and environment, or else those of the flow.  A sweep uses those of its
 * experiment file.
 */
const struct software *flow_software_of (const struct flow *f, const struct flow_step *s);

/* Check the settings of containers and environments without reading the file system. */
void flow_check_software (struct flow *f, const config_t *cf, struct problems *p);

/* Check that each of them exists.  With 'local', the container runtime must be installed on this
 * host, too.  With 'loads', load the environments, which executes code that the file names.
 */
void flow_find_software (const struct flow *f, bool local, bool loads, struct problems *p);

/* The software of a step as part of its cache key; NULL: none. */
json_t *flow_software_key (const struct flow *f, const struct flow_step *s);

/* Find a step by its name; NULL: there is none. */
struct flow_step *flow_step_find (const struct flow *f, const char *name);
size_t flow_step_number (const struct flow *f, const struct flow_step *s);

/* Whether the step reports this value; every sweep reports "checkpoint", "metric" and the like. */
bool flow_step_has (const struct flow_step *s, const char *value);

/* Call 'f' for each {name} in the texts of a step until it returns nonzero, and return that. */
typedef int (*flow_name_f) (const char *name, const char *where, void *arg);
int flow_each_name (const struct flow_step *s, flow_name_f f, void *arg);

/* Whether a text contains a {name}. */
bool flow_has_name (const char *text);

/* Replace the parameters in 'text', whose values are known before anything runs.  The caller frees
 * the result.
 */
char *flow_with_params (const struct flow *f, const char *text);

/* Evaluate a condition; -1 with 'err'.  'value' returns the text of a {name}, which this function
 * frees, or NULL with 'err'.
 */
typedef char *(*flow_value_f) (const char *name, void *arg, struct slurmdl_error *err);
int flow_condition_holds (const char *text, flow_value_f value, void *arg, bool *holds,
                          struct slurmdl_error *err);
