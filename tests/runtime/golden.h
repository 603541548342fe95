/* SPDX-License-Identifier: Apache-2.0 */
/* The environment that ranks of the steps in steps.h get. */
#pragma once

#include <stddef.h>

/* clang-format off */
static const struct golden {
    const char *framework;
    int step; /* index into steps[] */
    long rank;
    const char *roles;
    const char *env, *why; /* why: part of the reason */
} golden[] = {
    { "torch", 0, 3, NULL,
      "RANK=3 WORLD_SIZE=4 LOCAL_RANK=3 LOCAL_WORLD_SIZE=4 NODE_RANK=0 "
      "GROUP_RANK=0 GROUP_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=lo",
      NULL },
    { "torch", 1, 5, NULL,
      "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 NODE_RANK=1 "
      "GROUP_RANK=1 GROUP_WORLD_SIZE=2 MASTER_ADDR=n1 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torch", 2, 8, NULL,
      "RANK=8 WORLD_SIZE=11 LOCAL_RANK=0 LOCAL_WORLD_SIZE=3 "
      "NODE_RANK=2 GROUP_RANK=2 GROUP_WORLD_SIZE=3 MASTER_ADDR=n9 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torch", 3, 2, NULL,
      "RANK=2 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=2 "
      "GROUP_RANK=2 GROUP_WORLD_SIZE=3 MASTER_ADDR=a1 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torch", 6, 0, NULL,
      "RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=1 "
      "GROUP_RANK=1 GROUP_WORLD_SIZE=2 MASTER_ADDR=n3 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torch", 6, 2, NULL,
      "RANK=2 WORLD_SIZE=3 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 NODE_RANK=0 "
      "GROUP_RANK=0 GROUP_WORLD_SIZE=2 MASTER_ADDR=n3 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torch", 8, 0, NULL,
      "RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=2 "
      "GROUP_RANK=2 GROUP_WORLD_SIZE=3",
      "the master is not set: Slurm does not say which node has rank 0 with --distribution=arbitrary on more than two nodes" },
    { "torch", 9, 0, NULL,
      "RANK=0 WORLD_SIZE=5 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 NODE_RANK=0 "
      "GROUP_RANK=0 GROUP_WORLD_SIZE=3 MASTER_ADDR=n3 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torch", 9, 4, NULL,
      "RANK=4 WORLD_SIZE=5 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=2 "
      "GROUP_RANK=2 GROUP_WORLD_SIZE=3 MASTER_ADDR=n3 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torch", 1, 0, "master:1,worker:*",
      "RANK=0 WORLD_SIZE=8 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 NODE_RANK=0 "
      "GROUP_RANK=0 GROUP_WORLD_SIZE=2 MASTER_ADDR=n1 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0 DL_ROLE=master "
      "DL_ROLE_INDEX=0",
      NULL },
    { "deepspeed", 2, 10, NULL,
      "RANK=10 WORLD_SIZE=11 LOCAL_RANK=2 LOCAL_WORLD_SIZE=3 "
      "NODE_RANK=2 GROUP_RANK=2 GROUP_WORLD_SIZE=3 MASTER_ADDR=n9 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "accelerate", 0, 1, NULL,
      "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 NODE_RANK=0 "
      "GROUP_RANK=0 GROUP_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=lo",
      NULL },
    { "lightning", 1, 5, NULL,
      "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 NODE_RANK=1 "
      "GROUP_RANK=1 GROUP_WORLD_SIZE=2 MASTER_ADDR=n1 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0 "
      "SLURM_NTASKS_PER_NODE=4",
      NULL },
    { "lightning", 2, 8, NULL,
      "RANK=8 WORLD_SIZE=11 LOCAL_RANK=0 LOCAL_WORLD_SIZE=3 "
      "NODE_RANK=2 GROUP_RANK=2 GROUP_WORLD_SIZE=3 MASTER_ADDR=n9 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      "SLURM_NTASKS_PER_NODE is not set: Lightning needs as many tasks on each node (--ntasks-per-node)" },
    { "torchrun", 0, 0, NULL,
      "",
      "nothing is set: torchrun starts the ranks of a node itself: use one task per node (--ntasks-per-node=1)" },
    { "torchrun", 3, 2, NULL,
      "PET_RDZV_BACKEND=static PET_NNODES=3 PET_NODE_RANK=2 "
      "PET_MASTER_ADDR=a1 PET_MASTER_PORT=41000 GLOO_SOCKET_IFNAME=ib0",
      NULL },
    { "torchrun", 8, 1, NULL,
      "",
      "the master is not set: Slurm does not say which node has rank 0 with --distribution=arbitrary on more than two nodes" },
    { "tf", 0, 1, NULL,
      "TF_CONFIG={\"cluster\": {\"worker\": "
      "[\"127.0.0.1:41001\",\"127.0.0.1:41002\",\"127.0.0.1:41003\",\"127.0.0.1:41004\"]}, "
      "\"task\": {\"type\": \"worker\", \"index\": 1}, \"rpc_layer\": \"grpc\"} "
      "DL_ROLE=worker DL_ROLE_INDEX=1",
      NULL },
    { "tf", 1, 5, "chief:1,ps:2,worker:*,evaluator:1",
      "TF_CONFIG={\"cluster\": {\"chief\": [\"n1:41001\"], \"ps\": "
      "[\"n1:41002\",\"n1:41003\"], \"worker\": "
      "[\"n1:41004\",\"n2:41001\",\"n2:41002\",\"n2:41003\"]}, \"task\": "
      "{\"type\": \"worker\", \"index\": 2}, \"rpc_layer\": \"grpc\"} "
      "DL_ROLE=worker DL_ROLE_INDEX=2",
      NULL },
    { "tf", 2, 10, "chief:1,ps:2,worker:*",
      "TF_CONFIG={\"cluster\": {\"chief\": [\"n9:41001\"], \"ps\": "
      "[\"n9:41002\",\"n9:41003\"], \"worker\": "
      "[\"n9:41004\",\"n10:41001\",\"n10:41002\",\"n10:41003\",\"n10:41004\",\"n11:41001\",\"n11:41002\",\"n11:41003\"]}, "
      "\"task\": {\"type\": \"worker\", \"index\": 7}, \"rpc_layer\": \"grpc\"} "
      "DL_ROLE=worker DL_ROLE_INDEX=7",
      NULL },
    { "tf", 3, 2, "ps:1,worker:*",
      "TF_CONFIG={\"cluster\": {\"ps\": [\"a1:41001\"], \"worker\": "
      "[\"b07:41001\",\"b08:41001\"]}, \"task\": {\"type\": \"worker\", \"index\": "
      "1}, \"rpc_layer\": \"grpc\"} DL_ROLE=worker DL_ROLE_INDEX=1",
      NULL },
    { "tf", 6, 0, NULL,
      "TF_CONFIG={\"cluster\": {\"worker\": "
      "[\"n3:41001\",\"n1:41001\",\"n1:41002\"]}, \"task\": {\"type\": \"worker\", "
      "\"index\": 0}, \"rpc_layer\": \"grpc\"} DL_ROLE=worker "
      "DL_ROLE_INDEX=0",
      NULL },
    { "tf", 8, 0, NULL,
      "",
      "nothing is set: Slurm does not say which rank is on which node" },
    { "tf", 9, 4, "worker:*,evaluator:1",
      "TF_CONFIG={\"cluster\": {\"worker\": "
      "[\"n3:41001\",\"n3:41002\",\"n1:41001\",\"n1:41002\"]}, \"task\": "
      "{\"type\": \"evaluator\", \"index\": 0}, \"rpc_layer\": \"grpc\"} "
      "DL_ROLE=evaluator DL_ROLE_INDEX=0",
      NULL },
    { "jax", 1, 5, NULL,
      "JAX_COORDINATOR_ADDRESS=n1:41001 JAX_COORDINATOR_PORT=41001 "
      "JAX_NUM_PROCESSES=8 JAX_PROCESS_ID=5",
      NULL },
    { "jax", 8, 1, NULL,
      "",
      "the master is not set: Slurm does not say which node has rank 0 with --distribution=arbitrary on more than two nodes" },
    { "horovod", 2, 8, NULL,
      "HOROVOD_HOSTNAME=n11 HOROVOD_RANK=8 HOROVOD_SIZE=11 "
      "HOROVOD_LOCAL_RANK=0 HOROVOD_LOCAL_SIZE=3 HOROVOD_CROSS_RANK=2 "
      "HOROVOD_CROSS_SIZE=3 HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.9 "
      "HOROVOD_GLOO_RENDEZVOUS_PORT=41000 HOROVOD_GLOO_IFACE=ib0 "
      "HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo",
      NULL },
    { "horovod", 6, 2, NULL,
      "HOROVOD_HOSTNAME=n1 HOROVOD_RANK=2 HOROVOD_SIZE=3 "
      "HOROVOD_LOCAL_RANK=1 HOROVOD_LOCAL_SIZE=2 HOROVOD_CROSS_RANK=0 "
      "HOROVOD_CROSS_SIZE=1 HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.3 "
      "HOROVOD_GLOO_RENDEZVOUS_PORT=41000 HOROVOD_GLOO_IFACE=ib0 "
      "HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo",
      NULL },
    { "horovod", 9, 2, NULL,
      "HOROVOD_HOSTNAME=n1 HOROVOD_RANK=2 HOROVOD_SIZE=5 "
      "HOROVOD_LOCAL_RANK=0 HOROVOD_LOCAL_SIZE=2 HOROVOD_CROSS_RANK=1 "
      "HOROVOD_CROSS_SIZE=3 HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.3 "
      "HOROVOD_GLOO_RENDEZVOUS_PORT=41000 HOROVOD_GLOO_IFACE=ib0 "
      "HOROVOD_CONTROLLER=gloo HOROVOD_CPU_OPERATIONS=gloo",
      NULL },
    { "horovod", 8, 0, NULL,
      "",
      "nothing is set: Slurm does not say which rank is on which node" },
    { "ps", 1, 5, "worker:*,server:2,scheduler:1",
      "DMLC_ROLE=server DMLC_PS_ROOT_URI=10.0.0.2 "
      "DMLC_PS_ROOT_PORT=41000 DMLC_NUM_WORKER=5 DMLC_NUM_SERVER=2 "
      "DMLC_NODE_HOST=10.0.0.9 DMLC_INTERFACE=ib0 DL_ROLE=server "
      "DL_ROLE_INDEX=0",
      NULL },
    { "ps", 9, 0, NULL,
      "DMLC_ROLE=scheduler DMLC_PS_ROOT_URI=10.0.0.3 "
      "DMLC_PS_ROOT_PORT=41000 DMLC_NUM_WORKER=3 DMLC_NUM_SERVER=1 "
      "DMLC_NODE_HOST=10.0.0.9 DMLC_INTERFACE=ib0 DL_ROLE=scheduler "
      "DL_ROLE_INDEX=0",
      NULL },
    { "ps", 9, 3, "ps:2,worker:*",
      "",
      "nothing is set: ps has the roles scheduler:1, server and worker" },
    { "ps", 9, 1, "scheduler:1,ps:1,worker:*",
      "DMLC_ROLE=server DMLC_PS_ROOT_URI=10.0.0.3 "
      "DMLC_PS_ROOT_PORT=41000 DMLC_NUM_WORKER=3 DMLC_NUM_SERVER=1 "
      "DMLC_NODE_HOST=10.0.0.9 DMLC_INTERFACE=ib0 DL_ROLE=ps "
      "DL_ROLE_INDEX=0",
      NULL },
    { "ps", 1, 0, "chief:1,worker:*",
      "",
      "nothing is set: ps has the roles scheduler:1, server and worker" },
    { "paddle", 0, 1, NULL,
      "PADDLE_MASTER=127.0.0.1:41000 PADDLE_GLOBAL_SIZE=4 "
      "PADDLE_LOCAL_SIZE=4 PADDLE_GLOBAL_RANK=1 PADDLE_LOCAL_RANK=1 "
      "PADDLE_NNODES=1 "
      "PADDLE_TRAINER_ENDPOINTS=127.0.0.1:41001,127.0.0.1:41002,127.0.0.1:41003,127.0.0.1:41004 "
      "PADDLE_CURRENT_ENDPOINT=127.0.0.1:41002 PADDLE_TRAINER_ID=1 "
      "PADDLE_TRAINERS_NUM=4 PADDLE_RANK_IN_NODE=1 DL_ROLE=worker "
      "DL_ROLE_INDEX=1",
      NULL },
    { "paddle", 3, 2, NULL,
      "PADDLE_MASTER=10.0.0.1:41000 PADDLE_GLOBAL_SIZE=3 "
      "PADDLE_LOCAL_SIZE=1 PADDLE_GLOBAL_RANK=2 PADDLE_LOCAL_RANK=0 "
      "PADDLE_NNODES=3 "
      "PADDLE_TRAINER_ENDPOINTS=a1:41001,b07:41001,b08:41001 "
      "PADDLE_CURRENT_ENDPOINT=b08:41001 PADDLE_TRAINER_ID=2 "
      "PADDLE_TRAINERS_NUM=3 PADDLE_RANK_IN_NODE=0 DL_ROLE=worker "
      "DL_ROLE_INDEX=2",
      NULL },
    { "paddle", 4, 2, "ps:2,worker:*",
      "TRAINING_ROLE=TRAINER "
      "PADDLE_PSERVERS_IP_PORT_LIST=n1:41001,n2:41001 "
      "PADDLE_TRAINER_ENDPOINTS=n1:41002,n1:41003,n1:41004 "
      "PADDLE_TRAINERS_NUM=3 PADDLE_TRAINER_ID=0 POD_IP=n1 "
      "PADDLE_PORT=41002 DL_ROLE=worker DL_ROLE_INDEX=0",
      NULL },
    { "paddle", 4, 0, "ps:2,worker:*",
      "TRAINING_ROLE=PSERVER "
      "PADDLE_PSERVERS_IP_PORT_LIST=n1:41001,n2:41001 "
      "PADDLE_TRAINER_ENDPOINTS=n1:41002,n1:41003,n1:41004 "
      "PADDLE_TRAINERS_NUM=3 POD_IP=n1 PADDLE_PORT=41001 DL_ROLE=ps "
      "DL_ROLE_INDEX=0",
      NULL },
    { "mpi", 1, 5, NULL,
      "",
      "nothing is set: this step has no PMI, and each task would be rank 0 of 1: use srun --mpi=pmix (or pmi2, as the MPI was built)" },
    { "auto", 0, 1, NULL,
      "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 NODE_RANK=0 "
      "GROUP_RANK=0 GROUP_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 "
      "MASTER_PORT=41000 GLOO_SOCKET_IFNAME=lo "
      "JAX_COORDINATOR_ADDRESS=127.0.0.1:41001 "
      "JAX_COORDINATOR_PORT=41001 JAX_NUM_PROCESSES=4 JAX_PROCESS_ID=1",
      NULL },
    { "auto", 3, 2, NULL,
      "PET_RDZV_BACKEND=static PET_NNODES=3 PET_NODE_RANK=2 "
      "PET_MASTER_ADDR=a1 PET_MASTER_PORT=41000 RANK=2 WORLD_SIZE=3 "
      "LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=2 GROUP_RANK=2 "
      "GROUP_WORLD_SIZE=3 MASTER_ADDR=a1 MASTER_PORT=41000 "
      "GLOO_SOCKET_IFNAME=ib0 JAX_COORDINATOR_ADDRESS=a1:41001 "
      "JAX_COORDINATOR_PORT=41001 JAX_NUM_PROCESSES=3 JAX_PROCESS_ID=2",
      NULL },
    { "auto", 8, 0, NULL,
      "RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=2 "
      "GROUP_RANK=2 GROUP_WORLD_SIZE=3",
      "the master is not set: Slurm does not say which node has rank 0 with --distribution=arbitrary on more than two nodes" },
    { "off", 1, 0, NULL,
      "",
      NULL },
};
/* clang-format on */
