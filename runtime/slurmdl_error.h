/* SPDX-License-Identifier: Apache-2.0 */
/* Why a function of libslurmdl or libslurmdl-comm failed. */
#ifndef SLURMDL_ERROR_H
#define SLURMDL_ERROR_H

/* One clear line: what failed, where, and what to do.  A path that is too long for it has "..." in
 * its middle.
 */
struct slurmdl_error {
    char text[1024];
};

#endif
