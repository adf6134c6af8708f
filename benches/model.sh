# Read by other scripts: the emulated device with the delays of a machine of the network model: Tofu-D, where a
# message costs what it costs over MPI (docs/reproduction-trends.md, "The cost of a message"), SCALE (100)
# times as slow, so that the host's own time counts for little; times measured under it are to be divided
# by that. LINK is what links of the torus and receiving TNIs carry in GB/s, where messages then wait for
# each other (Tofu-D: 6.8); inf, as it is unless set: they do not meet. `hopbine simulate --machine
# "$machine"` predicts on the same machine.
# shellcheck shell=bash disable=SC2034

scale=${SCALE:-100}
# Between nodes L, o, 1/G of LogGP; inside nodes as much; ranks of a node use the device as well.
machine=tofu-d,network.link=${LINK:-inf},network.interface=6.26,network.latency=500,network.hop=0,network.gap=0
machine+=,node.post=1400,node.poll=1400,hopbine.shm_latency=100,hopbine.shm_overhead=200,node.copy=10
model=(HOPBINE_SHM=off HOPBINE_EMU_SLOWER="$scale" HOPBINE_EMU_MACHINE="$machine")
