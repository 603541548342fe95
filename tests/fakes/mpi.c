/* SPDX-License-Identifier: Apache-2.0 */
/* Preload before MPI.  FAKE_MPI=cuda: MPI claims to support device memory, which is host memory
 * with the fake CUDA.  FAKE_MPI=hang: rank 1 never creates the communicator.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_told (const char *what)
{
    const char *value = getenv ("FAKE_MPI");

    return value && !strcmp (value, what);
}

int MPIX_Query_cuda_support (void);
int MPIX_Query_cuda_support (void)
{
    return is_told ("cuda");
}

int MPI_Comm_create_group (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    int rank = 0;

    MPI_Comm_rank (comm, &rank);
    while (is_told ("hang") && rank == 1)
        sleep (1);
    return PMPI_Comm_create_group (comm, group, tag, made);
}
