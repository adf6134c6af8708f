#!/usr/bin/env bash
# Compares this tree with another commit: builds both, runs the benchmarks of both in turn in one run, so
# that they see the same machine, and prints the ratio of each figure and geometric means (above 1: this
# tree is ahead). The smallest and the median of a figure over the rounds count: the first hardly depends
# on what else the machine does.
#
#   benches/in-turn.sh [-r ROUNDS] [-b BENCHES] [-f FILTER] [-n RANKS] [-l BUDGET_MS] [-o CSV] REV
#
#   -r  rounds; 5
#   -b  of counts,overhead,engine,expand,check,processes,mpi; all but mpi, which takes the MPI of MPICC and
#       MPIEXEC, or Debian's Open MPI. counts: instructions of one call on each wire, by valgrind, which do not depend
#       on how busy the machine is; processes: as benches/against-mpi.sh, without the MPIs
#   -f  for engine: the part of the names of the figures that are wanted; all
#   -n  for processes: ranks; 2
#   -l  for processes: milliseconds per measurement; 20
#   -o  where the CSV goes, and with the end .json the same as JSON; target/in-turn.csv
# shellcheck disable=SC2154 # bind_ranks sets flags and sliced
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=5 benches=counts,overhead,engine,expand,check,processes filter='' ranks=2 budget=20
csv=target/in-turn.csv
while getopts r:b:f:n:l:o:h option; do
  case $option in
    r) rounds=$OPTARG ;; b) benches=$OPTARG ;; f) filter=$OPTARG ;; n) ranks=$OPTARG ;;
    l) budget=$OPTARG ;; o) csv=$OPTARG ;;
    *) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# = 1 ] || { sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2; }
rev=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "no such commit: $1" >&2; exit 2; }
wants() { [[ ,$benches, == *,$1,* ]]; }
if wants mpi; then
  # shellcheck source=/dev/null
  . ci/mpi/launch.sh
  [ "${MPICC:-}" ] && name=given || name=openmpi
  use_mpi "$name" || { echo "missing: $name (for mpi)" >&2; exit 1; }
  bind_ranks 2
fi

# Cargo gives both builds the same file names, so each has a directory of its own.
out=$PWD/target/in-turn
mkdir -p "$out" "$(dirname "$csv")"
trees=([0]="$out/tree-$rev" [1]="$PWD")
if [ ! -d "${trees[0]}" ]; then
  git worktree prune
  git worktree add --quiet --detach "${trees[0]}" "$rev"
fi
# The program that repeats calls is this tree's in both. (Over MPI, trees before the crate hopbine-mpi cannot be compared.)
cp examples/calls.rs "${trees[0]}/examples/"
names=(overhead engine expand check) cargo_benches=()
for name in "${names[@]}"; do
  ! wants "$name" || cargo_benches+=(--bench "$name")
done
declare -A program
for side in 0 1; do
  [ $side = 0 ] && dir=$out/$rev || dir=$out/this
  [ "${HOPBINE_BENCH_BUILT:-}" ] || (
    echo "building $([ $side = 0 ] && echo "${rev:0:12}" || echo 'this tree')" >&2
    cd "${trees[side]}"
    export CARGO_TARGET_DIR=$dir
    if wants counts || wants processes; then
      examples=(--example calls)
      # Before the command had bench-rank.
      [ ! -e examples/collectives.rs ] || examples+=(--example collectives)
      cargo build --release --quiet --bin hopbine "${examples[@]}"
    fi
    [ ${#cargo_benches[@]} = 0 ] ||
      cargo bench --quiet --no-run -p hopbine-benches "${cargo_benches[@]}" 2>/dev/null
    ! wants mpi ||
      CARGO_TARGET_DIR=$dir/mpi cargo build --release --quiet -p hopbine-mpi --features linked \
        --example calls-mpi
  )
  for name in "${names[@]}"; do
    ! wants "$name" || program[$side$name]=$(find "$dir/release/deps" -name "$name-*" ! -name '*.*' -printf '%T@ %p\n' |
      sort -rn | sed -n '1s/^[^ ]* //p')
  done
done
command -v valgrind >/dev/null || ! wants counts || { echo "missing: valgrind (for counts)" >&2; exit 1; }

# Lines `bench|figure|value`; a value is a time in ns, or instructions.
seconds='function ns(value, unit) { return value * (unit == "s" ? 1e9 : unit == "ms" ? 1e6 : unit == "ns" ? 1 : unit == "ps" ? 1e-3 : 1e3) }'
criterion() {
  awk "$seconds"'
    { sub(/^Benchmarking .*\r/, "") }
    # Not those with percents, which compare with an earlier run.
    /time: +\[/ && !/%/ {
      name = $0; sub(/ *time:.*/, "", name); if (name == "") name = last
      text = $0; sub(/.*\[/, "", text); split(text, part, " ")
      print bench "|" name "|" ns(part[3], part[4])
    }
    { last = $1 == "" ? last : $0 }' bench="$1"
}

# Instructions of one call on one core, where whoever waits yields at once.
count() {
  local dir=$1 wire=$2 n=900 before=() file
  shift 2
  file=$(mktemp -d "$out/count.XXXX")
  [ "$wire" != processes ] || before=("$dir/release/hopbine" launch -n 2)
  HOPBINE_BACKEND=${before:+shm} taskset -c 0 "${before[@]}" valgrind --tool=callgrind --fair-sched=yes \
    '--toggle-collect=*Repeated*counted*' --callgrind-out-file="$file/%p" \
    "$dir/release/examples/calls" "$wire" "$@" $n >/dev/null 2>&1
  awk -v name="$wire $*" -v n=$n '/^totals:/ { sum += $2 } END { print "counts|" name "|" sum / n / 2 }' "$file"/*
  rm -r "$file"
}

measure() {
  local side=$1 dir=$2 name
  for name in ${benches//,/ }; do
    case $name in
      counts)
        for wire in utofu shm processes; do
          for bytes in 8 1024 16384; do
            for form in blocking request persistent; do count "$dir" $wire allreduce $form $bytes; done
          done
          for form in blocking request; do count "$dir" $wire barrier $form 8; done
          for form in blocking request persistent; do
            count "$dir" $wire bcast $form 8
            count "$dir" $wire alltoall $form 1024
          done
        done ;;
      overhead)
        # Without valgrind: the counts are others'.
        "${program[$side$name]}" --bench | awk '
          match($0, / +[12] ranks? +/) {
            figure = substr($0, 1, RSTART - 1) ($0 ~ / 1 rank / ? ", 1 rank" : ", 2 ranks")
            split(substr($0, RSTART + RLENGTH), part, " ")
            print "overhead|" figure "|" part[1]
          }' ;;
      engine)
        CRITERION_HOME=$dir/criterion "${program[$side$name]}" --bench --noplot \
          --warm-up-time 0.5 --measurement-time 1 $filter 2>/dev/null | criterion $name ;;
      expand)
        CRITERION_HOME=$dir/criterion "${program[$side$name]}" --bench --noplot \
          --warm-up-time 0.5 --measurement-time 1 2>/dev/null | criterion $name ;;
      check)
        "${program[$side$name]}" | awk '{
          figure = $0; sub(/: proved.*/, "", figure)
          value = $0; sub(/.*proved in /, "", value); print "check|" figure "|" value * 1e9 }' ;;
      processes)
        local collectives=("$dir/release/examples/collectives")
        [ -e "${trees[side]}/examples/collectives.rs" ] || collectives=("$dir/release/hopbine" bench-rank)
        HOPBINE_BACKEND=shm "$dir/release/hopbine" launch -n "$ranks" "${collectives[@]}" \
          allreduce,reduce-scatter,allgather,bcast,reduce,alltoall,barrier 8,64,512,4096,32768,262144,2097152 \
          "$budget" | awk '{ print "processes|" $1 " " $2 "|" $3 * 1e3 }' ;;
      mpi)
        for call in 'allreduce blocking 8' 'allreduce request 8' 'allreduce persistent 8' 'barrier blocking 8' \
          'bcast blocking 8' 'allreduce blocking 1024' 'alltoall blocking 1024' 'allreduce blocking 16384'; do
          HOPBINE_BACKEND=mpi HOPBINE_SHM=off HOPBINE_TORUS=2 $MPIEXEC "${flags[@]}" -n 2 "${sliced[@]}" \
            "$dir/mpi/release/examples/calls-mpi" mpi $call 9000 | awk -v call="$call" '{ print "mpi|" call "|" $2 }'
        done ;;
      *) echo "unknown benchmark: $name" >&2; exit 2 ;;
    esac
  done
}

raw=$out/raw.txt
: >"$raw"
for ((round = 1; round <= rounds; round++)); do
  # Each is first as often as the other.
  for turn in 0 1; do
    side=$(((round + turn) % 2))
    [ $side = 0 ] && dir=$out/$rev || dir=$out/this
    echo "round $round of $rounds: $([ $side = 0 ] && echo "${rev:0:12}" || echo 'this tree')" >&2
    measure $side "$dir" | sed "s/^/$side|/" >>"$raw"
  done
  # What is counted once is known.
  benches=$(echo ",$benches," | sed 's/,counts,/,/; s/^,//; s/,$//')
  [ "$benches" ] || break
done

awk -F '|' -v csv="$csv" -v rev="${rev:0:12}" '
function sorted(list, n,   i, j, t) {
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
}
function median(list, n) { return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2 }
{
  figure = $2 "|" $3
  if (!(figure in seen)) { seen[figure] = 1; figures[++n_figures] = figure }
  values[figure, $1, ++n_of[figure, $1]] = $4
}
END {
  printf "%-10s %-44s %12s %12s %7s %7s\n", "bench", "figure", rev, "this", "median", "least"
  print "bench,figure,before,after,before_least,after_least,ratio,ratio_least" > csv
  json = csv; sub(/(\.csv)?$/, ".json", json); print "[" > json
  for (f = 1; f <= n_figures; f++) {
    figure = figures[f]; split(figure, key, "|"); is_whole = 1
    for (side = 0; side < 2; side++) {
      n = n_of[figure, side]; if (!n) is_whole = 0
      for (i = 1; i <= n; i++) list[i] = values[figure, side, i]
      sorted(list, n); middle[side] = n ? median(list, n) : 0; least[side] = list[1]
    }
    if (!is_whole || !middle[0] || !middle[1]) { print key[1] ", " key[2] ": NOT MEASURED by both"; continue }
    ratio = middle[0] / middle[1]; of_least = least[0] / least[1]
    printf "%-10s %-44s %12.1f %12.1f %7.3f %7.3f\n", key[1], key[2], middle[0], middle[1], ratio, of_least
    line = "%s,\"%s\",%.2f,%.2f,%.2f,%.2f,%.4f,%.4f\n"
    printf line, key[1], key[2], middle[0], middle[1], least[0], least[1], ratio, of_least > csv
    line = "%s  {\"bench\": \"%s\", \"figure\": \"%s\", \"before\": %.2f, \"after\": %.2f, \"before_least\": %.2f, \"after_least\": %.2f}"
    printf line, (n_lines++ ? ",\n" : ""), key[1], key[2], middle[0], middle[1], least[0], least[1] > json
    if (!(key[1] in logs)) benches[++n_benches] = key[1]
    logs[key[1]] += log(ratio); logs_least[key[1]] += log(of_least); n_in[key[1]]++
    if (!(key[1] in worst) || ratio < worst[key[1]]) worst[key[1]] = ratio
  }
  print "\n]" > json
  printf "\n%-10s %8s %8s %8s %8s\n", "means", "median", "least", "worst", "figures"
  for (b = 1; b <= n_benches; b++) {
    bench = benches[b]; n = n_in[bench]
    printf "%-10s %8.3f %8.3f %8.3f %8d\n", bench, exp(logs[bench] / n), exp(logs_least[bench] / n), worst[bench], n
  }
}' "$raw"
echo "CSV: $csv" >&2
