# SPDX-License-Identifier: Apache-2.0
"""Horovod's place for slurmdl.elastic."""

from ..elastic import ElasticSampler, HostsUpdatedInterrupt, ObjectState, State, TorchState, run

__all__ = ["ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State", "TorchState", "run"]
