"""Launches of clusters and of CTAs that wait for each other."""

import math
from typing import Any

from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.launch.driver import Driver, LoadedKernel
from pipelink_rules.launch.errors import refuse
from pipelink_rules.model.linked_kernel import Manifest


def launch_config(manifest: Manifest, grid: int, stream: int, api: Any) -> Any:
    """Return the CUlaunchConfig of one launch: grid, block, shared memory, stream, attributes."""
    config = api.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = manifest.threads, 1, 1
    config.sharedMemBytes = manifest.shared_bytes
    config.hStream = stream
    attributes = []
    if manifest.cluster != (1, 1, 1):
        attribute = api.CUlaunchAttribute()
        attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        # The cluster is a line: blockIdx.x numbers the CTAs, the axes belong to the tile scheduler.
        size.x, size.y, size.z = math.prod(manifest.cluster), 1, 1
        attributes.append(attribute)
    if manifest.coresident:
        attribute = api.CUlaunchAttribute()
        attribute.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


def resident_grid(manifest: Manifest, loaded: LoadedKernel, grid: int, driver: Driver) -> int:
    """Return the grid, limited to the resident CTAs; raise PL1420 if no CTA can be resident."""
    query = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    per_sm = int(driver.call(query, loaded.function, manifest.threads, manifest.shared_bytes))
    size = math.prod(manifest.cluster)
    resident = loaded.clusters * size if size > 1 else per_sm * loaded.device.sms
    if resident:
        return min(grid, resident)
    raise refuse(
        "PL1420",
        manifest.name,
        f"{loaded.device.name} cannot run the CTAs of `{manifest.name}` simultaneously",
        expected=f"at least {plural(size, 'CTA')} of {manifest.threads} threads and "
        f"{manifest.shared_bytes:,} bytes of shared memory",
        found=f"{plural(per_sm, 'CTA')} per SM",
        suggestions=("reduce the threads or the shared memory of the megakernel",),
    )


def resident_clusters(manifest: Manifest, function: Any, driver: Driver) -> int:
    """Return the resident clusters; fewer than SMs / size if a GPC has a remainder of SMs."""
    size = math.prod(manifest.cluster)
    if size == 1:
        return 0
    config = launch_config(manifest, size, 0, driver.api)
    return int(driver.call("cuOccupancyMaxActiveClusters", function, config))
