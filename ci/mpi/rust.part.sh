# The Rust interface: sys/mpi/tests/mpi. Sourced by ci/mpi.sh.
# shellcheck shell=bash disable=SC2154

build_rust() {
  cargo_hopbine || return 1
  runs_all || return 0
  install -D "$target/debug/hopbine" "$programs/bin/hopbine"
}

# Of four ranks that wait for a late one, one says so; two if one has had no core to answer another in time.
late() {
  local said lines
  said=$(launch_within 60 5 env HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_TIMEOUT=3 "$programs/mpi" late 2>&1)
  lines=$(grep -c "rank 1.*; waiting on$" <<<"$said")
  [ "$lines" -ge 1 ] && [ "$lines" -le 2 ] && [ "$(grep -c ": 1 long waits$" <<<"$said")" -ge 2 ] ||
    { printf 'FAILED: who waits for a late rank:\n%s\n' "$said" >&2; return 1; }
}

# FILE: what has been measured of the first size, to the nanosecond. A number that was written and read may differ in its
# last digit, and medians of whole nanoseconds may end in a half.
medians() { awk -F, '$2 == 8192 { print $3, int($8 * 1000 + 0.25) }' "$1"; }

# A table is measured by ranks that mpirun starts: in a time that is over before all sizes are measured, then on from
# there. Its rows replace those of a table that cuts messages into 64 bytes, and the ranks of a run go by them.
tuned() {
  local in=$programs/tuned said name hopbine=$programs/bin/hopbine
  local tune=(env "$@" "$hopbine" tune --measure allreduce --torus 2 --ports 1 --bytes 8KiB..32KiB:x2
    --against "$in/slow.toml" --quiet -o "$in/table.toml")
  rm -rf "$in"
  mkdir "$in"
  printf '%s\n' 'version = 1' 'name = "slow"' 'wire = "network"' 'otherwise = "network"' '[class.pair]' \
    'like = ["2"]' '[[rule]]' 'collective = "allreduce"' 'class = "pair"' \
    'rows = [{ bytes = "0..", algorithm = "mixed", ports = 1, segment = 64 }]' >"$in/slow.toml"
  if said=$(launch_within 60 2 "${tune[@]}" --budget 100ms --log "$in/first.csv" 2>&1) &&
    grep -q "[12] of 3 calls are measured" <<<"$said" && [ -s "$in/table.toml.part" ] &&
    said=$(launch_within 60 2 "${tune[@]}" --budget 6s --log "$in/second.csv" 2>&1) &&
    [ ! -e "$in/table.toml.part" ] &&
    cmp <(medians "$in/first.csv") <(medians "$in/second.csv") &&
    said=$("$hopbine" explain allreduce --torus 2 --ports 1 --bytes 32KiB --machine ideal-torus \
      --table "$in/table.toml" 2>&1) &&
    name=$(sed -n 's/.* on 2: \(.*\), 1 port, .*: table measured, line [0-9]*: class 2, .*/\1/p' <<<"$said") && [ -n "$name" ] &&
    said=$(launch_within 60 2 env "$@" HOPBINE_PORTS=1 HOPBINE_TUNING="$in/table.toml" \
      "$hopbine" run allreduce --torus 2 --bytes 32KiB --iterations 2 2>&1) &&
    grep -q " 32 KiB  $name " <<<"$said"; then
    echo "   a table is measured, continued and loaded"
  else
    printf 'FAILED: a table measured under mpirun (%s)\n%s\n' "$in" "$said" >&2
    return 1
  fi
}

run_rust() {
  runs_all || return 0
  local n messages=(HOPBINE_BACKEND=mpi HOPBINE_SHM=off) by_tcp=("OMPI_MCA_btl=tcp,self") status=0
  # Two ranks wait six seconds for the third. Those who come have three of these to see each other.
  beside ranks 3 "${messages[@]}" HOPBINE_TIMEOUT=2 "$programs/mpi" missing
  beside late
  # Two ranks, one of which computes for longer than the other waits.
  [ "$mpi" != openmpi ] || beside ranks 2 "${messages[@]}" "${by_tcp[@]}" HOPBINE_TIMEOUT=2 HOPBINE_ON_TIMEOUT=fail \
    "$programs/mpi" overtaken
  # Every collective by every algorithm over messages of MPI's; over shared memory, which is what
  # is chosen here; over the device in software; and over both in one world. MPICH gets the
  # other numbers of ranks.
  local over_messages="2 7 8" over_memory="7 12" torus=12
  [ "$mpi" = openmpi ] || over_messages="4 12" over_memory="2 4 5" torus=3
  for n in $over_messages; do
    ranks "$n" "${messages[@]}" "$programs/mpi" matrix || status=1
  done
  # By TCP longer messages go behind headers, and in parts. (MPICH hangs there in MPI_Finalize, also in
  # programs without hopbine.)
  if [ "$mpi" = openmpi ]; then
    ranks 3 "${messages[@]}" "${by_tcp[@]}" "$programs/mpi" matrix || status=1
    ranks 2 "${messages[@]}" "${by_tcp[@]}" "$programs/mpi" ahead || status=1
    ranks 2 "${messages[@]}" "${by_tcp[@]}" "$programs/mpi" streams || status=1
    # MPI sends everything eagerly: long messages also stay with their senders until they are matched.
    ranks 2 "${messages[@]}" "${by_tcp[@]}" OMPI_MCA_btl_tcp_eager_limit=1048576 \
      OMPI_MCA_btl_tcp_max_send_size=1048576 "$programs/mpi" streams || status=1
  fi
  for n in $over_memory; do
    ranks "$n" "$programs/mpi" matrix || status=1
  done
  ranks 4 HOPBINE_BACKEND=emu HOPBINE_RANKS_PER_NODE=2 "$programs/mpi" matrix || status=1
  ranks 6 HOPBINE_BACKEND=mpi HOPBINE_RANKS_PER_NODE=2 "$programs/mpi" matrix || status=1
  ranks 4 HOPBINE_BACKEND=mpi HOPBINE_PORTS=2 HOPBINE_SHM=off HOPBINE_TORUS=4 "$programs/mpi" matrix || status=1
  # Programs that bring their own MPI, at every level of threads.
  for level in funneled serialized multiple; do
    ranks 4 "${messages[@]}" "$programs/mpi" own $level || status=1
  done
  for level in funneled serialized; do
    for drive in worker workers; do
      ranks 2 HOPBINE_BACKEND=mpi HOPBINE_DRIVE=$drive "$programs/mpi" no-workers $level || status=1
    done
  done
  ranks 3 HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_DRIVE=workers "$programs/mpi" own multiple || status=1
  ranks 3 "$programs/mpi" own multiple || status=1
  ranks 2 "${messages[@]}" "$programs/mpi" many || status=1
  ranks 2 "${messages[@]}" "$programs/mpi" ahead || status=1
  ranks 2 "${messages[@]}" "$programs/mpi" long || status=1
  # Little or hardly anything is kept of what comes before its call.
  ranks 4 "${messages[@]}" HOPBINE_UNEXPECTED_BYTES=16384 "$programs/mpi" root-ahead || status=1
  ranks 4 "${messages[@]}" HOPBINE_UNEXPECTED_BYTES=1 "$programs/mpi" root-ahead || status=1
  ranks 3 "${messages[@]}" HOPBINE_UNEXPECTED_BYTES=1 "$programs/mpi" matrix || status=1
  ranks 3 "${messages[@]}" "$programs/mpi" unmet || status=1
  ranks 3 "${messages[@]}" "$programs/mpi" mismatch || status=1
  ranks 2 "${messages[@]}" "$programs/mpi" streams || status=1
  # The command, on a torus of processes.
  for n in $torus 4; do
    ranks "$n" "${messages[@]}" "$programs/bin/hopbine" run allreduce --torus "${n}x1" --bytes 64KiB \
      --algorithm all --iterations 2 --map hosts || status=1
  done
  tuned "${messages[@]}" || status=1
  [ "$mpi" != openmpi ] ||
    ranks 8 "$programs/bin/hopbine" run alltoall --torus 2x2x2 --bytes 64KiB --iterations 5 || status=1
  joined || status=1
  return $status
}
