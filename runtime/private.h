/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libslurmdl share. */
#ifndef RUNTIME_PRIVATE_H
#define RUNTIME_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/retain.h"
#include "runtime/slurmdl.h"

struct journal_about;

enum { DIMS_MAX = 8, DATASET_NAME_SIZE = 128 };

/* Memory that is part of the checkpoint. */
struct region {
    char name[DATASET_NAME_SIZE];
    enum slurmdl_type type;
    int ndims;
    uint64_t dims[DIMS_MAX];
    uint64_t bytes;
    void *data;
};

struct slurmdl {
    char *experiment;
    char *trial_dir;
    char *dir; /* of the attempt; of the trial on a rank that is not 0 */
    long trial;
    long attempt;
    long rank, size;
    int64_t length;
    uint32_t seed;
    struct slurmdl_metrics *metrics; /* NULL on a rank that is not 0 */
    struct region *regions;
    size_t nregions;
    struct retention retention;
    bool signals; /* handlers were asked for */
};

/* What the environment says of the run, for a metrics file. */
void context_about (struct journal_about *about);

struct slurmdl_metrics *metrics_create (const char *dir,
                                        const struct journal_about *about,
                                        struct slurmdl_error *err);

/* stop.c */
void stop_open (void);
void stop_close (void);

/* How a type is called in HDF5, and its size in bytes. */
struct element {
    enum slurmdl_type type;
    const char *name;
    size_t size;
};
extern const struct element elements[];

#endif
