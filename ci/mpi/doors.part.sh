# The C, Fortran and preload interfaces: capi/tests/mpi/*.c, capi/tests/mpi/calls.f90 and the examples, plain,
# through HB_ calls, and under libhopbine_preload.so. Sourced by ci/mpi.sh.
# shellcheck shell=bash disable=SC2030,SC2031,SC2154

build_doors() {
  local name flags=(-std=gnu11 -O1 -Wall -Wextra -Werror -Wno-stringop-overflow -Iinclude)
  # What C does not define ends the process, in our libraries as in the programs.
  flags+=(-fsanitize=undefined -fsanitize-undefined-trap-on-error)
  local f90=$MPIFC link module counts
  link=(-L"$programs/hopbine/$mpi" -L"$programs" -lhopbine_hb -lhopbine -lm
    "-Wl,-rpath,$programs/hopbine/$mpi:$programs")
  cargo_hopbine || return 1
  ln -sf "$target/debug/libhopbine_capi.so" "$programs/libhopbine.so.$hopbine_version"
  link_names "$programs" libhopbine.so
  build_mpi_libraries "$programs" "${flags[@]}" || return 1
  build_preload_library "$programs" "${flags[@]}" || return 1
  # The same, with nothing for this MPI beside it.
  mkdir -p "$programs/alone"
  cp "$programs/libhopbine_preload.so" "$programs/alone/"
  for name in calls orders threads recover requests mixed groups crowd late attributes looks; do
    beside "$MPICC" "${flags[@]}" "capi/tests/mpi/$name.c" -o "$programs/$name"
  done
  beside "$MPICC" "${flags[@]}" -fPIC -shared capi/tests/mpi/fjmpi.c -o "$programs/libfjmpi.so"
  beside "$MPICC" "${flags[@]}" capi/tests/mpi/leftovers.c sys/mpi/functions.c -o "$programs/leftovers" "${link[@]}"
  for name in place disagree starts passed large comm; do
    beside "$MPICC" "${flags[@]}" "capi/tests/mpi/$name.c" -o "$programs/$name" "${link[@]}"
  done
  for name in calls threads recover requests attributes; do
    beside "$MPICC" "${flags[@]}" -DHB "capi/tests/mpi/$name.c" -o "$programs/$name-hb" "${link[@]}"
  done
  [ "$mpi" != mpich ] || beside "$MPICC" "${flags[@]}" capi/tests/mpi/lost.c -o "$programs/lost"
  [ "$mpi" != openmpi ] ||
    beside "$MPICC" "${flags[@]}" -DMPIX capi/tests/mpi/requests.c -o "$programs/requests-mpix"
  for name in heat fft cg; do
    beside "$MPICC" "${flags[@]}" "examples/mpi/$name.c" -o "$programs/$name-hb" "${link[@]}"
    sed 's/HB_/MPI_/g; s/hopbine_mpi.h/mpi.h/' "examples/mpi/$name.c" >"$programs/$name.c"
    beside "$MPICC" "${flags[@]}" "$programs/$name.c" -o "$programs/$name" -lm
  done
  # MPICH's modules for Fortran are not quite standard themselves: no -std=f2018 with them.
  MPIFC=$f90 build_mpi_module "$programs" -O1 -Wall -Werror || return 1
  module=("${mpi_module[@]/#/$programs/}")
  module=("${module[@]/%/.o}")
  for name in heat cg fft; do
    beside "$f90" -O1 -Wall -I"$programs" "examples/mpi/$name.f90" "${module[@]}" -o "$programs/$name-hb-f" "${link[@]}"
    sed 's/HB_/MPI_/g; /use hopbine_mpi/d' "examples/mpi/$name.f90" >"$programs/$name.f90"
    beside "$f90" -O1 -Wall "$programs/$name.f90" -o "$programs/$name-f"
  done
  # The README's lines.
  { echo "program readme" && sed -n '/^```fortran/,/^```/{/^```/!p}' README.md && echo "end program"; } >"$programs/readme.f90"
  grep -q HB_Allreduce "$programs/readme.f90" || return 1
  beside "$f90" -Wall -fsyntax-only -I"$programs" "$programs/readme.f90"
  for name in mpif mpi mpi_f08; do
    beside "$f90" -O1 -w -fallow-argument-mismatch -cpp "-DUSE_$name" capi/tests/mpi/calls.f90 -o "$programs/calls-$name"
    beside "$f90" -O1 -w -fallow-argument-mismatch -cpp "-DUSE_$name" capi/tests/mpi/mixed.f90 -o "$programs/mixed-$name"
  done
  beside "$f90" -O1 -w -fallow-argument-mismatch capi/tests/mpi/short.f90 -o "$programs/short"
  for name in mpif mpi mpi_f08; do
    for counts in PLAIN THREAD; do
      beside "$f90" -O1 -Wall -cpp "-DUSE_$name" "-D$counts" -I"$programs" capi/tests/mpi/starts.f90 "${module[@]}" \
        -o "$programs/starts-$name-$counts" "${link[@]}"
    done
  done
  for name in mpi mpi_f08; do
    for counts in DEFAULT LARGE; do
      beside "$f90" -O1 -Wall -cpp -DHB_PERSISTENT "-DUSE_$name" "-D$counts" -I"$programs" capi/tests/mpi/shaped.f90 \
        "${module[@]}" -o "$programs/shaped-$name-$counts" "${link[@]}"
    done
  done
  sed 's/\<HB_\([A-Z][a-z_]*\)(/MPI_\1(/' capi/tests/mpi/shaped.f90 >"$programs/shaped.f90"
  # Open MPI 4 has no persistent ones of MPI's names.
  flags=()
  [ "$mpi" = openmpi ] || flags=(-DHB_PERSISTENT)
  beside "$f90" -O1 -cpp "${flags[@]}" -DUSE_mpi_f08 -DPLAIN "$programs/shaped.f90" -o "$programs/shaped-plain"
  joined
}

# N PROGRAM [ARGUMENT]...: a program under the library, which has nothing for its MPI: that is said once, and the
# program runs to its end.
with_nothing() {
  local n=$1 said words
  shift
  words=$(ranks "$n" "$@") || return 1
  said=$(export LD_PRELOAD=$programs/alone/libhopbine_preload.so; launch_within "$limit" "$n" "$@" 2>&1) || said+=" FAILED"
  if [[ $(grep -c "^hopbine: the program has .*: MPI serves all calls" <<<"$said") != 1 || $said == *FAILED ]] ||
    ! grep -qxF "${words#* s  }" <<<"$said"; then
    printf 'FAILED: %s under a library that has nothing for its MPI\n%s\n' "$*" "$said"
    return 1
  fi
  echo "   $(basename "$1") on $n ranks under a library that has nothing for its MPI: ${words#* s  }"
}

# N PROGRAM [ARGUMENT]...: runs a program. What is said on stderr comes last: a launcher that has both in one pipe may put
# it into the middle of a line.
apart() {
  local status=0
  launch_within "$limit" "$@" 2>"$programs/stderr-$BASHPID" || status=$?
  cat "$programs/stderr-$BASHPID"
  rm "$programs/stderr-$BASHPID"
  return $status
}

# REASONS N [NAME=VALUE]... PROGRAM [ARGUMENT]...: runs a program on N ranks; its report says that hopbine serves its
# calls, all but those that MPI serves for one of these reasons, a regular expression; "" if it serves all. The output is
# in $said.
reported() {
  local reasons=$1 n=$2 variables=(HOPBINE_REPORT=1) left
  shift 2
  while [[ $1 == *=* ]]; do
    variables+=("$1")
    shift
  done
  # Captured first: behind `grep -q` a pipe breaks, and its status would hide what is found.
  if ! said=$(export "${variables[@]}"; apart "$n" "$@") ||
    ! grep -q 'hopbine report: ' <<<"$said" || ! grep -Eq '^[a-z_-]+ .* B +[0-9]+ ' <<<"$said" ||
    { left=$(grep ' MPI: ' <<<"$said" | grep -Ev " MPI: ($reasons)\$"); [ -n "$left" ]; }; then
    printf 'FAILED: %s ranks: %s %s: not served, or not all of it\n%s\n' "$n" "${variables[*]}" "$*" "$said" >&2
    return 1
  fi
  echo "   $(basename "$1") on $n ranks: all served${reasons:+ but for: $reasons}"
}

# Runs a program on N ranks plain, renamed, and under the library: the same words each time. hopbine serves all
# collectives of both.
same() {
  local n=$1 plain=$2 renamed=$3 words said
  shift 3
  words=$(ranks "$n" "$plain" "$@") || return 1
  words=${words#* s  }
  for other in "$renamed" "LD_PRELOAD=$programs/libhopbine_preload.so $plain"; do
    # shellcheck disable=SC2086
    reported "" "$n" $other "$@" || return 1
    grep -qxF "$words" <<<"$said" || { printf '%s on %s ranks differs from: %s\n%s\n' "$other" "$n" "$words" "$said"; return 1; }
  done
  echo "   $(basename "$plain") on $n ranks: $words"
}

# N PROGRAM CALL...: runs a program under the library, whose report names these calls, those of alltoallw as
# MPI's, which serves them in all forms, and no others of MPI's.
served() {
  local n=$1 program=$2 said call left
  shift 2
  if ! said=$(export "LD_PRELOAD=$programs/libhopbine_preload.so" HOPBINE_REPORT=1; apart "$n" "$program") ||
    [[ $said != *"all correct"* || $said != *"hopbine report"* ]] ||
    { left=$(grep -Ev '^MPI_(Ia|A)lltoallw(_init)? .*MPI: collective' <<<"$said" | grep 'MPI: '); [ -n "$left" ]; }; then
    printf 'FAILED: %s under the library\n%s\n' "$program" "$said"
    return 1
  fi
  for call; do
    grep -q "^$call " <<<"$said" || { printf 'FAILED: %s: no %s in the report\n%s\n' "$program" "$call" "$said"; return 1; }
  done
  echo "   $(basename "$program") on $n ranks: all served"
}

run_doors() {
  local n name lengths said calls passed status=0 preload=LD_PRELOAD=$programs/libhopbine_preload.so
  local no_request="a request, without libhopbine_preload.so" of_calls
  of_calls="$no_request|a rank alone|an intercommunicator|no data"
  # MPICH refuses one buffer for both sides.
  [ "$mpi" = openmpi ] || of_calls+="|argument"
  # MPICH's ranks do not yield: more of them than cores take very long.
  local many=7
  [ "$mpi" = openmpi ] || $long || many=3
  for n in 2 4 $many; do
    reported "$of_calls" "$n" "$programs/calls-hb" wrong || status=1
    ranks "$n" "$preload" "$programs/calls" wrong || status=1
  done
  # It takes ten seconds.
  ! $long || ranks 2 "$preload" "$programs/calls" huge || status=1
  # Messages over MPI, as between hosts.
  ranks 4 "$preload" HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/calls" wrong || status=1
  reported "$of_calls" 3 HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/calls-hb" wrong || status=1
  for n in 2 $((many == 7 ? 5 : many)); do
    reported "" "$n" "$preload" "$programs/orders" padded || status=1
  done
  # Fujitsu MPI is an Open MPI.
  for n in 6 12; do
    [ "$mpi" != openmpi ] || reported "" $n LD_PRELOAD="$programs/libfjmpi.so" "$programs/place" || status=1
  done
  # Threads, in shared memory and over messages.
  reported "" 3 "$preload" "$programs/threads" || status=1
  reported "" 2 HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/threads-hb" || status=1
  reported "" 2 HOPBINE_START=call "$programs/threads-hb" late || status=1
  # Requests: plain, so that the program is known to be right; served, in shared memory and over messages;
  # and all that are renamed as well, which the report says.
  reported "$no_request" 2 "$programs/requests-hb" || status=1
  # More of them at once than a window of operations, in shared memory and over messages.
  reported "no data" 4 "$preload" "$programs/crowd" 1 || status=1
  ! runs_all || reported "no data" 3 "$preload" HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/crowd" 1 || status=1
  [ "$mpi" != openmpi ] || reported "no data" 3 "$preload" HOPBINE_BACKEND=mpi HOPBINE_SHM=off OMPI_MCA_btl=tcp,self \
    "$programs/crowd" 2 || status=1
  for n in 2 $many; do
    ranks "$n" "$preload" "$programs/requests" wrong || status=1
    reported "" "$n" "$preload" "$programs/mixed" persistent || status=1
  done
  ranks 3 "$preload" HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/requests" wrong || status=1
  # Workers make hopbine's calls of MPI while the program's threads start requests and wait for them.
  ranks 2 "$preload" HOPBINE_DRIVE=worker HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/requests" wrong || status=1
  reported "" 3 "$preload" HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/mixed" persistent || status=1
  said=$(export "${preload?}" HOPBINE_REPORT=1; launch_within "$limit" 3 "$programs/requests-hb" wrong 2>&1) || status=1
  [[ $said == *iallreduce* && $said == *"every request is done"* && $said != *MPI_Iallreduce* ]] ||
    { printf 'FAILED: requests-hb under the library\n%s\n' "$said"; status=1; }
  # A message of nothing against a long one, short ones of two lengths, long ones against short ones and of
  # two lengths, over messages of MPI's; and some that go in parts by TCP.
  for lengths in "0 5000" "3 5" "200000 5000" "5 200000" "200000 300000"; do
    # shellcheck disable=SC2086
    ! runs_all || reported "" 4 HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/disagree" $lengths || status=1
  done
  for lengths in "20000 30000" "30000 5" "200000 30000"; do
    # shellcheck disable=SC2086
    [ "$mpi" != openmpi ] || reported "" 4 HOPBINE_BACKEND=mpi HOPBINE_SHM=off OMPI_MCA_btl=tcp,self \
      "$programs/disagree" $lengths || status=1
  done
  # By the board, which the next call takes as well.
  for lengths in "3 5" "5 0"; do
    # shellcheck disable=SC2086
    ! runs_all || reported "" 4 "$programs/disagree" $lengths || status=1
  done
  # What ranks get wrong together, in shared memory and over messages.
  said=$(export "${preload?}"; launch_within "$limit" 4 "$programs/recover" 2>&1) || status=1
  # Each failure has its own message, also where an earlier one had another.
  [[ $said == *"HOPBINE_ERR_MISMATCH: this rank gives itself another length than it takes"* && $said == *"all went on"* ]] ||
    { printf 'FAILED: recover under the library\n%s\n' "$said"; status=1; }
  reported argument 3 HOPBINE_BACKEND=mpi HOPBINE_SHM=off "$programs/recover-hb" || status=1
  for name in mpif mpi mpi_f08; do
    served 3 "$programs/calls-$name" barrier bcast allreduce allgather alltoall ibcast iallreduce || status=1
    # MPICH 4.0's MPI_Testany counts from 0 with mpi_f08.
    [ "$mpi-$name" = mpich-mpi_f08 ] || served 3 "$programs/mixed-$name" barrier iallreduce || status=1
  done
  # Short reductions in Fortran: all by barrier gates where there are some, and the same without.
  for name in shm mpi emu; do
    said=$(export "${preload?}" HOPBINE_REPORT=1 HOPBINE_BACKEND=$name; apart 4 "$programs/short") || status=1
    [[ $said == *"all correct"* ]] || { printf 'FAILED: short with %s\n%s\n' "$name" "$said"; status=1; }
  done
  said=$(grep -E '^(allreduce|barrier) ' <<<"$said") || true
  if [[ $'\n'$said != *$'\nallreduce '* ]] || grep -vq ' gates: the network' <<<"$said"; then
    printf 'FAILED: short reductions that are not by the gates\n%s\n' "$said"
    status=1
  fi
  passed=(MPI_Alltoallw MPI_Ialltoallw MPI_Alltoallw_init)
  for name in {mpi,mpi_f08}-{DEFAULT,LARGE}; do
    # MPICH 4.0's own persistent allgather is right only once.
    [ "$mpi" = mpich ] || reported "$no_request|collective" 4 "$programs/shaped-$name" || status=1
    served 4 "$programs/shaped-$name" "${passed[@]}" || status=1
  done
  calls=(barrier bcast reduce allreduce reduce-scatter scan exscan allgather gather scatter alltoall)
  local persistent=("${calls[@]/%/_init}" "${passed[@]}")
  [ "$mpi" != openmpi ] || persistent=("${passed[@]:0:2}")
  served 4 "$programs/shaped-plain" "${calls[@]}" "${calls[@]/#/i}" "${persistent[@]}" || status=1
  # Persistent collectives as Open MPI 4 and Fujitsu MPI call them.
  if [ "$mpi" = openmpi ]; then
    said=$(export "${preload?}" HOPBINE_REPORT=1; launch_within "$limit" 3 "$programs/requests-mpix" 2>&1) || status=1
    [[ $said == *$'\nallreduce_init '* && $said == *$'\nbcast_init '* && $said == *"every request is done"* && $said != *MPI_Allreduce_init* ]] ||
      { printf 'FAILED: MPIX_Allreduce_init and MPIX_Bcast_init under the library\n%s\n' "$said"; status=1; }
  fi
  ranks 2 "$preload" HOPBINE_EXCEPT=bcast,allreduce "$programs/calls" || status=1
  # A name that is none is told, once, and MPI serves.
  said=$(export "${preload?}" HOPBINE_ONLY=allredcue; launch_within "$limit" 2 "$programs/calls-mpi" 2>&1) || status=1
  [[ $said == *"HOPBINE_ONLY: \`allredcue\` is not valid"* && $said == *"all correct"* && $said != *allredcue*allredcue* ]] ||
    { printf 'FAILED: a wrong name in HOPBINE_ONLY\n%s\n' "$said"; status=1; }
  # Counts of 64 bits in calls that MPI serves.
  for n in 2 4; do
    ! runs_all || ranks $n "$programs/large" || status=1
    ranks $n "$preload" "$programs/large" || status=1
  done
  # The report counts each HB_ call once, and nothing else, without the library and under it.
  for said in HOPBINE_REPORT=1 "$preload"; do
    said=$(export "${said?}" HOPBINE_REPORT=1 HOPBINE_EXCEPT=scatter; launch_within "$limit" 3 "$programs/passed" 2>&1) || status=1
    [[ $said == *"all are made"* && $(sed -nE 's/^([A-Za-z_]+) .* B +([0-9]+) +[0-9.]+ +[0-9.]+ .*/\1 \2/p' <<<"$said") == \
      $'MPI_Allreduce 5\nMPI_Alltoallw 7\nMPI_Reduce_scatter 1\nMPI_Scatter 2\nallreduce 3' ]] ||
      { printf 'FAILED: the report on HB_ calls of which MPI serves some\n%s\n' "$said"; status=1; }
  done
  # The program's attributes; also if hopbine starts when the world has one.
  ranks 3 "$preload" "$programs/attributes" || status=1
  ranks 3 "$programs/attributes-hb" || status=1
  ranks 3 HOPBINE_START=call "$programs/attributes-hb" || status=1
  # MPI's own work beside collectives that hopbine serves.
  for n in 2 4; do
    ranks $n "$preload" "$programs/looks" || status=1
  done
  # A rank is lost. Open MPI's launcher ends the others.
  [ "$mpi" != mpich ] || MPIEXEC="$MPIEXEC -disable-auto-cleanup" ranks 3 "$preload" "$programs/lost" || status=1
  # A rank that comes to MPI_Finalize late is no error, and nothing is said.
  said=$(export "${preload?}" HOPBINE_TIMEOUT=3; launch_within "$limit" 3 "$programs/late" 2>&1) || status=1
  [ "$said" = "all have ended" ] || { printf 'FAILED: a rank that is late in MPI_Finalize\n%s\n' "$said"; status=1; }
  with_nothing 3 "$programs/heat" 20 20 || status=1
  for name in mpif mpi mpi_f08; do
    with_nothing 3 "$programs/calls-$name" || status=1
  done
  same 4 "$programs/heat" "$programs/heat-hb" 20 20 || status=1
  same 2 "$programs/fft" "$programs/fft-hb" 64 || status=1
  same 3 "$programs/heat-f" "$programs/heat-hb-f" 20 20 || status=1
  if runs_all; then
    same 3 "$programs/cg-f" "$programs/cg-hb-f" 10 || status=1
    same 3 "$programs/cg" "$programs/cg-hb" 10 || status=1
    same 2 "$programs/fft-f" "$programs/fft-hb-f" 64 || status=1
  fi
  return $status
}

# Starts and ends: hopbine's, the program's, and both in each order.
run_doors_starts() {
  local name said status=0 preload=LD_PRELOAD=$programs/libhopbine_preload.so
  # hopbine starts in MPI_Init, by whatever name; also where both libraries are there.
  for name in "" thread; do
    # shellcheck disable=SC2086
    reported "" 4 "$programs/starts" $name || status=1
  done
  for name in {mpif,mpi,mpi_f08}-{PLAIN,THREAD}; do
    reported "" 4 "$programs/starts-$name" || status=1
  done
  reported "" 4 "$preload" HOPBINE_START=call "$programs/starts" || status=1
  # HOPBINE_START=call: with the first call of all ranks; without one MPI serves, which one rank says.
  reported "" 4 HOPBINE_START=call "$programs/starts" all || status=1
  said=$(export HOPBINE_START=call; launch_within "$limit" 4 "$programs/starts" 2>&1) || status=1
  [[ $(grep -c 'until HB_Init' <<<"$said") == 1 && $said == *"the sums are right"* ]] ||
    { printf 'FAILED: HB_ calls before hopbine has started\n%s\n' "$said"; status=1; }
  # A wrong value, and ranks that differ, are told once, by the first of them.
  said=$(export HOPBINE_START=later; launch_within "$limit" 4 "$programs/starts" 2>&1) || status=1
  [[ $(grep -c 'HOPBINE_START: `later` is not valid; it must be one of init, call' <<<"$said") == 1 && $said == *"the sums are right"* ]] ||
    { printf 'FAILED: a wrong HOPBINE_START\n%s\n' "$said"; status=1; }
  # hopbine's communicators of MPI's; also where both libraries are there.
  ranks 4 "$programs/comm" || status=1
  ranks 4 HOPBINE_START=call "$programs/comm" late || status=1
  ranks 4 "$preload" "$programs/comm" || status=1
  # What is made at the start is freed: a wrong name, a torus of other ranks, hopbine's own end, the program's.
  ranks 3 HOPBINE_ONLY=allredcue "$programs/leftovers" cannot || status=1
  ranks 3 HOPBINE_TORUS=5x5 "$programs/leftovers" cannot || status=1
  if runs_all; then
    ranks 3 HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_PORTS=two "$programs/leftovers" cannot || status=1
    ranks 3 HOPBINE_BACKEND=shm HOPBINE_PORTS=9999 "$programs/leftovers" cannot || status=1
  fi
  # One rank has a wrong setting: nobody waits for it, and all say why.
  for name in shm mpi; do
    said=$(export HOPBINE_START=call HOPBINE_BACKEND=$name HOPBINE_SHM=off; launch_within 20 3 "$programs/leftovers" one HOPBINE_PORTS none 2>&1) || status=1
    [[ $said == *"rank 1: "*HOPBINE_PORTS*none*"MPI serves all calls"* && $said == *"nothing is left"* ]] ||
      { printf 'FAILED: a rank with a wrong setting\n%s\n' "$said"; status=1; }
  done
  # One rank leaves other calls to MPI.
  said=$(export HOPBINE_START=call; launch_within 20 3 "$programs/leftovers" one HOPBINE_EXCEPT allreduce 2>&1) || status=1
  [[ $said == *"rank 1 has another HOPBINE_ONLY or HOPBINE_EXCEPT than rank 0"*"nothing is left"* ]] ||
    { printf 'FAILED: a rank with another HOPBINE_EXCEPT\n%s\n' "$said"; status=1; }
  # One rank has no hopbine: two of the others say what they wait for.
  said=$(export HOPBINE_TIMEOUT=1; launch_within 5 3 env "$preload" "$programs/heat" 20 20 : -n 1 "$programs/heat" 20 20 2>&1) || true
  [[ $(grep -c "rank [01] has waited 1 s for other ranks to start hopbine" <<<"$said") == 2 && $said != *"rank 2 has"* ]] ||
    { printf 'FAILED: a rank without the library\n%s\n' "$said"; status=1; }
  reported "" 3 "$programs/leftovers" || status=1
  reported "" 3 HOPBINE_START=call "$programs/leftovers" own || status=1
  said=$(export HOPBINE_START=call; launch_within "$limit" 3 "$programs/leftovers" turned 2>&1) || status=1
  [[ $said == *"with other ranks than MPI_COMM_WORLD's, or in another order; MPI serves all calls"* && $said == *"nothing is left"* ]] ||
    { printf 'FAILED: hopbine started by the program with its ranks in another order\n%s\n' "$said"; status=1; }
  return $status
}
