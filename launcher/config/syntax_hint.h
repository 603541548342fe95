/* SPDX-License-Identifier: Apache-2.0 */
/* What may be meant where libconfig says no more than "syntax error". */
#pragma once

/* The mistake of 'text' at 'line', which becomes that of the mistake.  Returns
 * a text that the caller frees, NULL if memory is short.
 */
char *syntax_hint (const char *text, int *line);
