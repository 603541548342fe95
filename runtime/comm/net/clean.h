/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of other processes, before they are printed. */
#ifndef RUNTIME_COMM_NET_CLEAN_H
#define RUNTIME_COMM_NET_CLEAN_H

/* Each control character, which a terminal might obey, becomes '?'.  Returns
 * 'text'.
 */
char *clean_text (char *text);

#endif
