/* SPDX-License-Identifier: Apache-2.0 */
/* dl ckpt extract, export, import: tensors in other files. */
#pragma once

#include "launcher/sys/settings.h"

/* Each returns an exit status of launcher/sys/say.h. */
int ckpt_extract (const struct settings *st);
int ckpt_export (const struct settings *st);
int ckpt_import (const struct settings *st);
