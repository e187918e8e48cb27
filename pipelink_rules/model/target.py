"""Resources of a GPU target.  Limits are those of the exact target, never of its family."""

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True)
class Target:
    """Resources of one SM of a target (PTX ISA; CUDA programming guide, compute capabilities)."""

    name: str  # "sm_90a"
    shared_bytes_cta: int  # opt-in limit of one CTA
    shared_bytes_sm: int  # of the SM; 1 KiB is reserved per resident CTA
    registers_sm: int = 65536
    registers_thread: int = 255
    warps_cta: int = 32
    warps_sm: int = 64
    named_barriers: int = 16  # ids 0..15; 0 belongs to __syncthreads
    tmem_columns: int = 0
    setmaxnreg: bool = True
    setmaxnreg_minimum: int = 24
    setmaxnreg_maximum: int = 240  # what tuned kernels use; the ISA allows 256
    wgmma: bool = False
    runs_on: tuple[int, int] = (9, 0)  # compute capability the cubin loads on
    description: str = ""

    def shared_limit(self, occupancy: int) -> int:
        """Return the dynamic shared memory of a CTA when `occupancy` CTAs share the SM."""
        share = (self.shared_bytes_sm // occupancy - KIB) // 128 * 128
        return min(self.shared_bytes_cta, share)


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("sm_80", 163 * KIB, 164 * KIB, setmaxnreg=False, runs_on=(8, 0)),
        Target(
            "sm_90a",
            227 * KIB,
            228 * KIB,
            wgmma=True,
            runs_on=(9, 0),
            description="Hopper, H100/H200",
        ),
        Target(
            "sm_100a",
            227 * KIB,
            228 * KIB,
            tmem_columns=512,
            runs_on=(10, 0),
            description="Blackwell, B200",
        ),
        Target("sm_120a", 99 * KIB, 100 * KIB, warps_sm=48, runs_on=(12, 0)),
        Target("sm_121a", 99 * KIB, 100 * KIB, warps_sm=48, runs_on=(12, 1)),
    )
}
