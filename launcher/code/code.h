/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use of code and software: frozen code, working copies, environments. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "launcher/config/diagnostics.h"
#include "launcher/sys/digest.h"
#include "runtime/base/error.h"

struct command_line;
struct experiment;
struct software;

/* ---- Which files an experiment freezes ---- */

/* A file, an empty folder or a link. */
struct code_file {
    char *path;   /* relative to the root */
    char *target; /* of a link; else NULL */
    int64_t size;
    mode_t mode;
};

struct code_files {
    char *root; /* absolute path of the folder to freeze */
    bool is_git;
    struct code_file *list;     /* ordered by path within each folder */
    size_t n, nlinks, nfolders; /* all entries; links and empty folders among them */
    bool is_text;               /* only text is frozen, because there were too many files */
    int64_t bytes;
    char why[300];      /* why nothing is frozen; "": there is nothing to freeze */
    bool is_off;        /* the user turned freezing off, although there is code to freeze */
    char absolute[512]; /* a script that the command names by its absolute path, so that dl does not
                           freeze it; or "" */
};

/* Select the files of the experiment file's folder to freeze.  Skip experiments, and all folders on
 * the path to 'experiments', in which the new one is created: a link to one of these would make the
 * copy contain itself.
 */
enum code_selection {
    CODE_INVALID = -1, /* the group "code" is wrong; see 'err' */
    CODE_FROZEN,
    CODE_NONE, /* nothing is frozen; see c->why */
};
enum code_selection code_select (const struct experiment *e, const char *experiments,
                                 struct code_files *c, struct slurmdl_error *err);
void code_files_free (struct code_files *c);

/* Whether a path of 'len' characters has the name of a script, such as "train.py". */
bool code_is_script (const char *path, size_t len);

/* ---- Frozen code ---- */

/* An archive (tar compressed with zstd), and the folder in which trials run. */

enum { ARCHIVE_MAX = 128 << 20 }; /* larger archives are not read; bytes */

struct code_archive {
    char *data;
    size_t size;
    char digest[DIGEST_SIZE]; /* equal if the files are equal */
};

/* Pack the files in their current state; -1 with 'err'. */
int code_archive_pack (const struct code_files *c, struct code_archive *a,
                       struct slurmdl_error *err);
void code_archive_free (struct code_archive *a);

/* Unpack an archive into 'dir', an existing, empty folder.  Rejects names that would lead out of
 * it, even through a link.  Returns -1 with 'err' and errno: EBADMSG for a bad archive, EFBIG for
 * one that holds far more than dl ever freezes.
 */
int code_archive_unpack (const void *data, size_t size, const char *dir, struct slurmdl_error *err);

/* Call 'f' for each file and link.  'text' is the content of the file, or the target of the link.
 * Returns -1 with 'err'.
 */
int code_archive_each (const void *data, size_t size,
                       void (*f) (const char *path, const void *text, size_t size, void *arg),
                       void *arg, struct slurmdl_error *err);

/* -- the folder in which trials run: frozen files with links beside them -- */

/* Where to unpack an archive. */
struct code_copy {
    const char *base; /* a folder that only this user may write to */
    const char *root; /* the folder that was frozen */
    const char *dir;  /* the folder of the experiment file */
};

/* Write the path of the folder that stands for 'dir': BASE, the last three names of the root, and
 * the rest of 'dir'.  The two folders above the root's copy contain links to the entries of the
 * original ones, so that relative paths to these still work.  Returns -1 with errno: EBADMSG if the
 * experiment file is not below the root, or ENAMETOOLONG.
 */
int code_copy_path (const struct code_copy *c, char *buf, size_t size);

/* Check that the base exists and that only this user can write to it; -1 with 'err'. */
int code_copy_check (const struct code_copy *c, struct slurmdl_error *err);

/* Unpack an archive into a new folder beside the base, and rename that folder to the base when it
 * is complete.  If another process was faster, use its copy.  Returns -1 with 'err'.
 */
int code_copy_make (const struct code_copy *c, const struct code_archive *a,
                    struct slurmdl_error *err);

/* ---- The patterns of .dlignore and of the group "code" ---- */

/* Whether a pattern of a NULL-ended list (NULL: empty) matches 'path', which is relative to the
 * frozen folder; 'is_folder' tells whether it is a folder.  NAME matches in every folder, DIR/NAME
 * only from the frozen folder on, and NAME/ only folders.  * and ? do not match a slash; ** does.
 */
bool pattern_list_has (char *const *list, const char *path, bool is_folder);

/* Append the lines of a .dlignore to a NULL-ended list, except empty ones and those that begin with
 * '#'.
 */
void pattern_list_read (char ***list, const char *text);

/* ---- The code archive of an experiment, which experiments with the same code share ---- */

/* Write the archive to the folder of an experiment, as code.tar.zst or, if that exists, as
 * code-DIGEST.tar.zst with 12 digits.  Also link it to .dl-code/DIGEST beside the experiments,
 * where the next experiment with the same code finds it.  Returns -1 with 'err'.
 */
int store_put (const char *dir, const struct code_archive *a, struct slurmdl_error *err);

/* Set the umask so that only the user, and the group that shares 'dir' if there is one, can read
 * new files: the code may be private although the folder of experiments is not.  Returns the
 * previous umask.
 */
mode_t store_umask (const char *dir);

/* Read the archive of an experiment.  Returns -1 with 'err' and errno; EBADMSG if its digest
 * differs.
 */
int store_get (const char *dir, const char *digest, struct code_archive *a,
               struct slurmdl_error *err);

/* Make sure that the copy exists: unless it does, unpack the archive of an experiment into it.
 * Returns -1 with 'err'.
 */
int store_unpack (const char *dir, const char *digest, const struct code_copy *copy,
                  struct slurmdl_error *err);

/* Make git ignore a folder. */
void ignore_in_git (const char *folder);

/* Remove stored archives that no experiment beside 'dir' uses.  Call it while removing 'dir'. */
void store_clean (const char *dir);

/* ---- The provenance of an experiment: the facts that are needed to run it again ---- */

/* Collect the command, the host, git's commit and diff, loaded modules, packages of the
 * entrypoint's Python, and the versions of CUDA and its driver.  Record nothing else of the
 * environment, and leave out facts that take more than seconds to find.  Returns JSON, which the
 * caller frees.
 */
char *provenance_collect (const struct experiment *e, const struct code_files *c);

/* ---- Copies of the frozen code, and the files that attempts write there ---- */

/* Make 'to' a copy of 'from', an unpacked archive.  Files are copied, by reflink if possible, so
 * that no attempt sees changes that the script of another one makes.  Links stay links, so that
 * large data is not copied.
 *
 * Small files and checkpoints behind absolute links are the exception.  They probably come from a
 * run of the script by hand, and the script would write them again, so they are copied, too, unless
 * a pattern of the NULL-ended list 'exclude' (or NULL) matches.  All copies share Python's compiled
 * files, which are kept in 'from'.
 *
 * Returns -1 with 'err'; the caller may remove the incomplete copy.
 */
int working_copy_make (const char *from, const char *to, char *const *exclude,
                       struct slurmdl_error *err);

/* Whether nothing in the copy 'to' was changed, removed or added. */
bool working_copy_is_clean (const char *from, const char *to);

/* Remove everything from the copy 'to' that is unchanged since it was made. */
enum copy_rest {
    COPY_UNKNOWN = -1, /* 'to' could not be read */
    COPY_GONE,         /* nothing was left, so 'to' was removed, too */
    COPY_WRITTEN,      /* files that the script wrote are left */
};
enum copy_rest working_copy_prune (const char *from, const char *to);

/* Copy the files in 'from', a pruned copy, over those in 'to'; -1 with 'err'. */
int working_copy_add (const char *from, const char *to, struct slurmdl_error *err);

/* Whether a file name is that of a checkpoint, such as "best.pt". */
bool is_checkpoint_name (const char *name);

/* Whether a folder contains a non-empty regular file, at any depth. */
bool working_copy_has_files (const char *dir);

/* Call 'f' for each file below 'dir', with its path relative to 'dir', until 'f' returns nonzero,
 * and return that.
 */
int working_copy_each (const char *dir,
                       int (*f) (const char *path, const struct stat *st, void *arg), void *arg);

/* ---- The software of trials, that is their container and environment ---- */

/* Check, load and record it. */

/* -- checking and loading -- */

/* Check that the image exists and, with 'local', that this machine has a runtime for it.  With
 * 'loads', also load the modules and the environment, which runs code that the file names.  Adds a
 * problem of one line for each failure.
 */
void software_check (struct experiment *e, bool local, bool loads, struct problems *p);

/* Load the software, and find out what starts containers.  Call it before the first trial of a
 * process.  Returns -1 with 'err' and errno, which is EINVAL if something does not exist.
 */
int software_enter (struct experiment *e, struct slurmdl_error *err);

/* -- as JSON -- */

/* Describe the container and the folders that it sees, and with 'all' also modules, conda and venv,
 * for `dl within`, which reads DL_SOFTWARE.  The caller frees the text.
 */
char *software_text (const struct software *s, char *const *folders, bool all);

/* Add "container" and "environment" to 'o', the provenance of an experiment whose trials run in
 * 'dir'.
 */
void software_record (const struct software *s, const char *dir, json_t *o);

/* Print such a record. */
void software_record_print (const json_t *record);

/* Whether the image is a file that has changed since the record was made. */
bool software_image_differs (const json_t *record);

/* Print the container and the environment of the trials, one per line, if there are any. */
void software_print (const struct software *s);

/* dl within: run a command in the container that DL_SOFTWARE describes.  Returns an exit status. */
int cmd_within (const struct command_line *line);

/* ---- Containers: images, runtimes and their command lines, and srun's options for pyxis ---- */

/* -- the image: a file, a folder or a reference -- */

enum image_kind { SIF = 1, SQUASHFS = 2, FOLDER = 4, REFERENCE = 8 };

/* The absolute path of the image if it is a file or folder, else its reference.  A relative path
 * counts from 'dir', in which the trials run.  The caller frees the result.  NULL with errno,
 * usually ENOENT, if the image can only be a file and cannot be read.
 */
char *container_image (const struct software *s, const char *dir);

/* -- a runtime -- */

/* Choose a runtime that is in PATH and can run the image; pyxis does not count.  Returns its name,
 * or NULL with 'err' and errno ENOENT.
 */
const char *container_runtime (const struct software *s, const char *dir, const char *path,
                               struct slurmdl_error *err);

/* Make the command line, a NULL-ended list, that runs 'command' in a container with the working
 * folder and the environment of this process.  The container sees the 'folders'.  '*name' receives
 * the name of the container if killing the runtime does not end it, else NULL.  The caller frees
 * both.  Returns NULL with 'err'.
 *
 * Changes variables of this process for the runtime.
 */
char **container_command (const struct software *s, char *const *folders, char *const *command,
                          char **name, struct slurmdl_error *err);

/* -- srun with pyxis, which starts the ranks of a trial in containers -- */

/* Whether srun starts the containers: the file requests pyxis, or it names no runtime, srun has
 * pyxis's options, and pyxis can run the image.
 */
bool container_by_srun (const struct software *s, const char *dir);

/* Append to a NULL-ended list srun's options for the container, and then the words that start the
 * command of a rank inside it.  Returns -1.
 */
int container_srun_words (const struct software *s, const char *dir, char *const *folders,
                          char *const *variables, char ***words, struct slurmdl_error *err);

/* ---- Load the modules and the conda or virtual environment of trials, once per process ---- */

/* Set s->activated to the variables of this process plus those that the modules, the conda
 * environment or the virtual environment set.  'dir' is the folder in which trials run.  The
 * environment of this process stays as it is.  Does nothing if none of them is configured, or if
 * called again.
 *
 * Returns -1 with 'err' and errno, which is EINVAL if something does not exist.  Then 'where',
 * unless NULL, receives the origin of the setting at fault.
 */
int software_activate (struct software *s, const char *dir, struct origin *where,
                       struct slurmdl_error *err);

/* Whether nothing is left to load. */
bool software_is_loaded (const struct software *s);

/* The value of a variable in the loaded environment; NULL: it is not set. */
const char *software_variable (const struct software *s, const char *name);

/* Find a program in 'list', which has the form of PATH.  A name with a slash is returned unchanged.
 * The caller frees the path; NULL: there is no such program.
 */
char *program_path (const char *list, const char *name);
