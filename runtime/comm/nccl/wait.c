/* SPDX-License-Identifier: Apache-2.0 */
/* Wait for NCCL and for CUDA's streams, bounded. */
#include <errno.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/nccl/module.h"

/* Looks at a stream: between those at the clock, and before naps. */
enum { CHECK_EACH = 1024, BEFORE_NAPS = 20 };

const struct comm_services *nccl_lib;

int nccl_cuda_failed (cudaError_t e, const char *what, struct slurmdl_error *err)
{
    cudaGetLastError (); /* else the program would find our error */
    errno = e == cudaErrorMemoryAllocation ? ENOMEM : EIO;
    return errorf (err, "nccl: %s: %s", what, cudaGetErrorString (e));
}

int nccl_enter (const struct nccl_self *s)
{
    int before = s->device;

    cudaGetDevice (&before);
    if (before != s->device)
        cudaSetDevice (s->device);
    return before;
}

void nccl_leave (const struct nccl_self *s, int before)
{
    if (before != s->device)
        cudaSetDevice (before);
}

/* ncclCommAbort() is the only way to stop NCCL's kernels and proxy threads. */
static int give_up (struct nccl_self *s, int error)
{
    if (s->comm)
        ncclCommAbort (s->comm);
    s->comm = NULL;
    s->failed = true;
    errno = error;
    return -1;
}

int nccl_failed (struct nccl_self *s, ncclResult_t r, const char *what, struct slurmdl_error *err)
{
    const char *detail = s->comm ? ncclGetLastError (s->comm) : NULL;

    errorf (err, "nccl: rank %d: %s: %s%s%.100s", s->rank, what, ncclGetErrorString (r),
            detail && *detail ? ": " : "", detail ? detail : "");
    return give_up (s, r == ncclRemoteError ? ECONNRESET : r == ncclInvalidArgument ? EINVAL : EIO);
}

static int look (struct nccl_self *s, const char *what, double deadline, struct slurmdl_error *err)
{
    if (atomic_load (&s->aborted)) {
        errorf (err, "nccl: aborted");
        return give_up (s, ECONNRESET);
    }
    if (nccl_lib->check (s->mesh, err) < 0)
        return give_up (s, errno);
    if (monotonic () < deadline)
        return 0;
    errorf (err,
            "nccl: rank %d (%s) has waited for %g s for %s; NCCL_DEBUG=INFO "
            "says more",
            s->rank, nccl_lib->host (s->mesh, s->rank), s->timeout, what);
    return give_up (s, ETIMEDOUT);
}

int nccl_settle (struct nccl_self *s, ncclResult_t r, const char *what, struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    struct timespec pause = { 0, 100000 };

    for (long n = 0; r == ncclInProgress || (r == ncclSuccess && n == 0); n++) {
        ncclResult_t async = ncclSuccess;
        r = ncclCommGetAsyncError (s->comm, &async);
        if (r == ncclSuccess)
            r = async;
        if (r != ncclInProgress)
            break;
        if (look (s, what, deadline, err) < 0)
            return -1;
        nanosleep (&pause, NULL);
    }
    return r == ncclSuccess ? 0 : nccl_failed (s, r, what, err);
}

int nccl_drain (struct nccl_self *s, cudaStream_t stream, bool naps, const char *what,
                struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    struct timespec nap = { 0, 20000 };
    ncclResult_t async;

    for (long n = 1;; n++) {
        cudaError_t e = cudaStreamQuery (stream);
        if (e == cudaSuccess)
            return 0;
        if (e != cudaErrorNotReady) {
            nccl_cuda_failed (e, what, err);
            return give_up (s, EIO);
        }
        if (naps && n > BEFORE_NAPS)
            nanosleep (&nap, NULL);
        if (n % CHECK_EACH)
            continue;
        if (ncclCommGetAsyncError (s->comm, &async) == ncclSuccess && async != ncclSuccess
            && async != ncclInProgress)
            return nccl_failed (s, async, what, err);
        if (look (s, what, deadline, err) < 0)
            return -1;
    }
}
