/* SPDX-License-Identifier: Apache-2.0 */
/* Where sbatch puts the output of a job. */
#pragma once

struct command;

/* Add the option: 'file' (with %A, %a and %j) in a folder of any name.  In one
 * with a backslash sbatch puts nothing; the script of the job then names the
 * same file itself, and begins with
 *     case FOLDER in *\\*) exec >>FILE 2>&1 ;; esac
 */
void slurm_add_output (struct command *c, const char *folder, const char *file);
