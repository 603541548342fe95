/* SPDX-License-Identifier: Apache-2.0 */
/* One-line definitions of parameters. */
#pragma once

#include "searcher/searcher.h"

#define FLOAT(name, min, max, count)                                                               \
    {                                                                                              \
        name, PARAM_FLOAT, min, max, 0, 0, count                                                   \
    }
#define INT(name, min, max, count)                                                                 \
    {                                                                                              \
        name, PARAM_INT, min, max, 0, 0, count                                                     \
    }
#define LOG(name, base, min, max, count)                                                           \
    {                                                                                              \
        name, PARAM_LOG, min, max, base, 0, count                                                  \
    }
#define CHOICE(name, n)                                                                            \
    {                                                                                              \
        name, PARAM_CATEGORICAL, 0, 0, 0, n, 0                                                     \
    }
