"""How is a grid of clusters launched?  With a CUlaunchConfig instead of plain numbers."""

from __future__ import annotations

from typing import Any

from pipelink_rules.model.image import Manifest


def launch_config(manifest: Manifest, grid: int, stream: int, api: Any) -> Any:
    """The CUlaunchConfig of one launch: grid, block, shared memory, stream, cluster."""
    config = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = manifest.threads, 1, 1
    config.sharedMemBytes = manifest.shared_bytes
    config.hStream = stream
    attribute = api.CUlaunchAttribute()
    attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    size = attribute.value.clusterDim
    size.x, size.y, size.z = manifest.cluster
    config.attrs, config.numAttrs = [attribute], 1
    return config
