# Read by other scripts: the emulated device's latency model of Fugaku, SCALE (100) times as slow, so
# that the host's own time counts for little; times measured under it are to be divided by that.
# What the figures come from is in docs/reproduction-trends.md, "The cost of a message". LINK_MBPS is what
# links of the torus and receiving TNIs carry in 10^6 bytes per second, where messages then wait for each
# other (Tofu-D: 6800); 0, as it is unless set: they do not meet.

scale=${SCALE:-100}
# Between nodes L, o, 1/G of LogGP; inside nodes as much; ranks of a node use the device as well.
model=(
  HOPBINE_SHM=off
  HOPBINE_EMU_PUT_NS=$((500 * scale)) HOPBINE_EMU_OVERHEAD_NS=$((1400 * scale))
  HOPBINE_EMU_TNI_MBPS=$((6260 / scale)) HOPBINE_EMU_LINK_MBPS=$((${LINK_MBPS:-0} / scale))
  HOPBINE_EMU_NODE_PUT_NS=$((100 * scale)) HOPBINE_EMU_NODE_OVERHEAD_NS=$((200 * scale))
  HOPBINE_EMU_NODE_MBPS=$((10000 / scale))
)
