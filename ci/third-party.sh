#!/usr/bin/env bash
# Programs that are not ours, plain and under libhopbine_preload.so: what passes without it must pass
# with it, and compute the same. By hand; a few minutes. (ci/mpi-suite.sh: an MPI's own tests.)
#
#   ci/third-party.sh [--install] openmpi|mpich PREFIX
#
#   --install   installs them first (Debian, as root)
#   PREFIX      hopbine as installed by `MPICC=mpicc.openmpi ./install.sh`, or mpich's
#
# Both MPIs: ScaLAPACK's own tests, parallel HDF5. Open MPI, to which Debian links the others: LAMMPS,
# HPC Challenge, PETSc's own examples and tests, FFTW, MUMPS, Quantum ESPRESSO, CP2K, NWChem, GPAW,
# DOLFINx, Meep, LIGGGHTS, PT-Scotch, mpi4py and its own suite, its FFTs, petsc4py, h5py, SLEPc's examples and
# tests, MPB, MPQC, OpenCoarrays' tests, Rmpi, Ruby's MPI.
#
# Exit code: 0 well, 1 something differs, 3 nothing could be run.
# shellcheck disable=SC2154 # use_mpi sets mpi and MPICC
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=/dev/null
. ci/mpi/launch.sh

packages=(hpcc lammps python3-mpi4py python3-numpy python3-mpi4py-fft python3-h5py-mpi scalapack-mpi-test
  libhdf5-openmpi-dev libhdf5-mpich-dev openmpi-bin mpich mumps-test quantum-espresso quantum-espresso-data
  libpetsc-real-dev libpetsc3.18-dev-examples libfftw3-mpi-dev pkg-config cp2k cp2k-data python3-petsc4py-real
  nwchem-openmpi gpaw gpaw-data python3-dolfinx-real meep-openmpi liggghts ptscotch libslepc-real3.18-dev
  libslepc3.18-dev-examples mpb-mpi mpqc libcoarrays-openmpi-dev r-cran-rmpi ruby-mpi)
if [ "${1:-}" = --install ]; then
  apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
  shift
fi
use_mpi "${1:?openmpi or mpich}"
library=$(realpath "${2:-/usr/local}")/lib/libhopbine_preload.so
[ -f "$library" ] || { echo "ci/third-party.sh: there is no $library; see ./install.sh" >&2; exit 3; }
ours=$PWD/capi/tests/mpi/third
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# RANKS PROGRAM ...
limit=120
# What is said on stderr comes last: a launcher that has both in one pipe may put it into the middle of a line.
plain() {
  local status=0
  launch_within $limit "$@" 2>"$work/stderr" || status=$?
  cat "$work/stderr"
  return $status
}
# The report goes to a file: what a program says stays as it is.
preloaded() { (export LD_PRELOAD=$library HOPBINE_REPORT=$work/report; plain "$@"); }

failed=0 ran=0 all_served=0
# NAME REASON: what was not compared is named, and counted where a script counts that (ci/stages.sh).
left_out() {
  echo "$1: NOT RUN: $2"
  [ -z "${HOPBINE_TEST_SKIPPED:-}" ] || echo "third-party ($mpi), $1: $2" >>"$HOPBINE_TEST_SKIPPED"
  [ "${CI:-}" != true ] || failed=1
}
# NAME FILTER RANKS PROGRAM ...: runs a program both ways; FILTER keeps of its output what must be
# the same, and must keep something.
both() {
  local name=$1 filter=$2 a b
  shift 2
  if ! command -v "$2" >/dev/null; then
    left_out "$name" "there is no $2"
    return
  fi
  ran=$((ran + 1))
  rm -f hpccoutf.txt
  a=$(plain "$@") || { left_out "$name" "fails without hopbine"; return; }
  [ ! -f hpccoutf.txt ] || a=$(cat hpccoutf.txt)
  rm -f hpccoutf.txt report
  b=$(preloaded "$@") || { echo "$name: FAILED under hopbine: $b"; failed=1; return; }
  if [ ! -s report ]; then
    echo "$name: FAILED: hopbine has not started under it"
    failed=1
    return
  fi
  local report
  report=$(<report)
  [ ! -f hpccoutf.txt ] || b=$(cat hpccoutf.txt)
  a=$($filter <<<"$a") b=$($filter <<<"$b")
  if [ -z "$a" ] || [ "$a" != "$b" ]; then
    printf '%s: DIFFERS\n-- without\n%s\n-- with\n%s\n' "$name" "$a" "$b"
    failed=1
    return
  fi
  local served passed
  served=$(awk '!/MPI: / { for (i = 2; i <= NF; i++) if ($i == "B" || $i ~ /iB$/) { n += $(i + 1); break } } END { print n + 0 }' <<<"$report")
  passed=$(awk '/MPI: / { for (i = 2; i <= NF; i++) if ($i == "B" || $i ~ /iB$/) { n += $(i + 1); break } } END { print n + 0 }' <<<"$report")
  all_served=$((all_served + served))
  echo "$name on $1 ranks: the same; rank 0's calls: $served by hopbine, $passed by MPI"
}

# -- ScaLAPACK's tests, which check residuals: as many must pass. Where the linear algebra is from
# differs by the system; grids for more ranks than there are they leave out.
counts() { grep -a 'tests completed'; }
for test in xdpbllt xzptllt xsinv xdbrd xdgblu; do
  cp /usr/lib/*/scalapack/"$mpi"-tests/*.dat . 2>/dev/null || true
  both "ScaLAPACK, $test" counts 2 "$(echo /usr/lib/*/scalapack/"$mpi"-tests/$test)"
done

# -- HDF5: slabs and chunks written and read by all ranks at once.
read_back() { grep 'read what was written'; }
if command -v "h5pcc.$mpi" >/dev/null && "h5pcc.$mpi" -w -O1 "$ours/h5.c" -o h5; then
  both "HDF5" read_back 3 ./h5 matrix.h5
else
  left_out HDF5 "there is no h5pcc.$mpi, or it does not build"
fi

if [ "$mpi" = openmpi ]; then
# -- LAMMPS: atoms of a liquid; energies and pressures to all printed digits.
cat >melt <<'EOF'
units lj
lattice fcc 0.8442
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 10
run 50
EOF
# The same with charges: long-range forces by FFTs.
cat >charges <<'EOF'
units lj
atom_style charge
lattice sc 1.0
region box block 0 6 0 6 0 6
create_box 2 box
create_atoms 1 box
mass * 1.0
set group all type/fraction 2 0.5 12393
set type 1 charge 1.0
set type 2 charge -1.0
velocity all create 1.0 87287 loop geom
pair_style lj/cut/coul/long 1.12246 3.0
pair_coeff * * 1.0 1.0
kspace_style pppm 1.0e-4
fix 1 all nve
thermo 10
run 20
EOF
thermo() { sed -n '/^Step/,/^Loop/p' | grep -v '^Loop'; }
both "LAMMPS, a melt" thermo 4 lmp -in melt -log none
both "LAMMPS, charges" thermo 3 lmp -in charges -log none

# -- HPC Challenge: Linpack, PTRANS, FFT, RandomAccess and more, each of which checks its results.
cat >hpccinf.txt <<'EOF'
HPLinpack benchmark input file
-
HPL.out
8
1
400
1
40
0
1
2
2
16.0
1
2
1
4
1
2
1
1
1
1
1
0
2
64
0
0
1
8
-
1
400
1
40
EOF
checks() { grep -E '_failed|FAILED|^[A-Za-z_]*(Success|verif)[A-Za-z_]*=|tests completed and (passed|failed)' | sed 's/ *[0-9.e+-]* seconds//' | sort -u; }
both "HPC Challenge" checks 4 hpcc

# -- PETSc: its own examples and tests, whose residuals and solutions must be the same; the pipelined
# solvers reduce by requests (MPI_Iallreduce).
examples=$(echo /usr/share/petsc/*/share/petsc/examples/src)
pkgs=$(printf '%s:' /usr/lib/petscdir/petsc*/*-real/lib/pkgconfig /usr/lib/slepcdir/slepc*/*-real/lib/pkgconfig)
# PACKAGE EXAMPLES RANKS SOURCE ARGUMENT...
example() {
  local package=$1 from=$2 n=$3 source=$4 flags name=$1-${4//\//-}
  shift 4
  # shellcheck disable=SC2086
  if flags=$(PKG_CONFIG_PATH=$pkgs pkg-config --cflags --libs "$package" PETSc) &&
    $MPICC -w -O1 "$from/$source.c" -o "$name" $flags -lm; then
    both "$package, $source $*" cat "$n" "./$name" "$@"
  else
    left_out "$package, $source" "it does not build"
  fi
}
petsc() { example PETSc "$examples" "$@"; }
slepc() { example SLEPc "$(echo /usr/share/slepc/*/share/slepc/examples/src)" "$@"; }
petsc 3 ksp/ksp/tutorials/ex2 -m 40 -n 40 -ksp_type pipecg -pc_type jacobi -ksp_monitor_short
petsc 4 ksp/ksp/tutorials/ex2 -m 40 -n 40 -ksp_type pgmres -pc_type jacobi -ksp_monitor_short
petsc 3 ksp/ksp/tutorials/ex23 -n 100 -ksp_monitor_short
petsc 4 snes/tutorials/ex19 -da_refine 2 -ksp_type fgmres -pc_type jacobi -snes_monitor_short
petsc 2 vec/vec/tutorials/ex9
petsc 3 vec/vec/tests/ex33
petsc 3 mat/tests/ex5
slepc 3 eps/tutorials/ex2 -n 20 -eps_nev 4 -terse
slepc 4 eps/tests/test1 -n 18 -eps_nev 4 -eps_max_it 1500 -eps_type lobpcg -terse
slepc 3 eps/tests/test4 -terse
slepc 4 svd/tests/test1 -terse
slepc 3 sys/classes/bv/tests/test11 -bv_type svec

# -- FFTW: three dimensions, transposed by all ranks.
transformed() { grep 'there and back'; }
# shellcheck disable=SC2086
if $MPICC -w -O1 "$ours/fftw.c" -o fftw -lfftw3_mpi -lfftw3 -lm; then
  both "FFTW" transformed 3 ./fftw
else
  left_out FFTW "it does not build"
fi

# -- MUMPS: sparse systems, each from a file.
solution() { grep -a -i 'solution is'; }
for precision in s:real d:real c:cmplx z:cmplx; do
  input=/usr/lib/mumps/input_simpletest_${precision#*:}
  [ ! -f "$input" ] || cp "$input" system
  printf '#!/bin/sh\nexec /usr/lib/mumps/%ssimpletest <system\n' "${precision%:*}" >mumps
  chmod +x mumps
  if [ -f "$input" ]; then both "MUMPS, ${precision%:*}" solution 4 ./mumps; else left_out MUMPS "there is no $input"; fi
done

# -- Quantum ESPRESSO: silicon's energy, forces and stress, with plane waves and with points in k shared.
cat >silicon <<'EOF'
&control
 calculation='scf', prefix='si', pseudo_dir='/usr/share/espresso/pseudo', outdir='./si', tprnfor=.true., tstress=.true.
/
&system
 ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=18.0
/
&electrons
 conv_thr=1d-8
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 2 2 2 1 1 1
EOF
energies() { grep -E '^!|Total force|P=|JOB DONE'; }
for pools in 1 2; do
  both "Quantum ESPRESSO, $pools pools" energies 4 pw.x -nk $pools -in silicon
done

# -- CP2K: two molecules of hydrogen, energy and forces.
cat >hydrogen.inp <<'EOF'
&GLOBAL
  PROJECT h2
  RUN_TYPE ENERGY_FORCE
&END GLOBAL
&FORCE_EVAL
  METHOD QS
  &DFT
    BASIS_SET_FILE_NAME /usr/share/cp2k/BASIS_MOLOPT
    POTENTIAL_FILE_NAME /usr/share/cp2k/GTH_POTENTIALS
    &MGRID
      CUTOFF 100
    &END MGRID
    &SCF
      EPS_SCF 1.0E-6
      MAX_SCF 30
    &END SCF
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &PRINT
    &FORCES ON
    &END FORCES
  &END PRINT
  &SUBSYS
    &CELL
      ABC 5 5 5
    &END CELL
    &COORD
      H 0 0 0
      H 0.74 0 0
      H 2.5 2.5 2.5
      H 2.5 2.5 3.24
    &END COORD
    &KIND H
      BASIS_SET DZVP-MOLOPT-GTH
      POTENTIAL GTH-PADE-q1
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
EOF
forces() { grep -E 'ENERGY[|]|SUM OF ATOMIC FORCES'; }
OMP_NUM_THREADS=1 both "CP2K" forces 2 cp2k.psmp -i hydrogen.inp

# -- Programs whose inputs say what they compute.
solved() { grep solved; }
total_energy() { grep -E 'Total SCF energy' | sed 's/....$//'; }
printed_energies() { grep '^energy'; }
fields() { grep '^field'; }
grains() { grep -E '^ +[0-9]+ +[0-9]+ '; }
both "NWChem" total_energy 3 nwchem.openmpi "$ours/water.nw"
both "GPAW" printed_energies 4 gpaw python "$ours/crystal.py"
both "DOLFINx" solved 4 /usr/bin/python3 "$ours/membrane.py"
both "Meep" fields 3 meep "$ours/waveguide.ctl"
both "LIGGGHTS" grains 4 liggghts -in "$ours/grains.in"

cat >crystal.ctl <<'EOF'
(set! num-bands 4)
(set! k-points (list (vector3 0 0 0) (vector3 0.5 0 0)))
(set! geometry-lattice (make lattice (size 1 1 no-size)))
(set! geometry (list (make cylinder (center 0 0 0) (radius 0.2) (height infinity)
                           (material (make dielectric (epsilon 12))))))
(set! resolution 16)
(run-tm)
EOF
frequencies() { grep '^tmfreqs:'; }
both "MPB" frequencies 3 mpb-mpi crystal.ctl
iterations() { grep -aE 'iter +[0-9]+ energy|total scf energy'; }
both "MPQC" iterations 3 mpqc -messagegrp mpi /usr/share/doc/mpqc/examples/hfh2oopt.in

# -- OpenCoarrays: Fortran's images by one-sided messages, its co_sum and teams by collectives.
passed() { grep 'Test passed'; }
for test in co_sum_test co_max_test co_reduce_test co_broadcast_test teams_subset; do
  both "OpenCoarrays, $test" passed 4 "$(echo /usr/lib/*/open-coarrays/openmpi/bin/OpenCoarrays-*-tests/$test)"
done

# -- Rmpi and Ruby: vectors, and objects as bytes.
cat >vectors.R <<'EOF'
suppressMessages(library(Rmpi))
r <- mpi.comm.rank(0); n <- mpi.comm.size(0)
invisible(mpi.comm.dup(0, 1))
total <- mpi.allreduce(as.double(r + 1:5), type = 2, op = "sum", comm = 1)
ranks <- mpi.allgather(as.integer(r), type = 1, rdata = integer(n), comm = 1)
told <- list(a = 1, b = "two")
if (r == 0) mpi.bcast.Robj(told, rank = 0, comm = 1) else told <- mpi.bcast.Robj(rank = 0, comm = 1)
names <- mpi.gather.Robj(paste("rank", r, told$b), root = 0, comm = 1)
all <- mpi.gatherv(as.double(rep(r, r + 1)), type = 2, rdata = double(n * (n + 1) / 2),
                   rcounts = as.integer(1:n), root = 0, comm = 1)
most <- mpi.reduce(as.integer(r), type = 1, op = "maxloc", dest = 0, comm = 1)
invisible(mpi.barrier(1))
if (r == 0) writeLines(paste(c("vectors", total, ranks, unlist(names), all, unlist(most)), collapse = " "))
invisible(mpi.comm.free(1))
mpi.quit()
EOF
vectors() { grep -a '^vectors' | sort; }
both "Rmpi" vectors 3 Rscript vectors.R
cat >vectors.rb <<'EOF'
require "mpi"
require "narray"
MPI.Init
world = MPI::Comm::WORLD
mine, sum = NArray.int(5).indgen! + world.rank, NArray.int(5)
world.Allreduce(mine, sum, MPI::Op::SUM)
all, turned = NArray.int(5, world.size), NArray.int(5, world.size)
world.Allgather(mine, all)
world.Alltoall(all, turned)
world.Bcast(mine, world.size - 1)
world.Barrier
puts "vectors #{sum.to_a} #{turned.to_a} #{mine.to_a}" if world.rank == 0
MPI.Finalize
EOF
both "Ruby" vectors 3 ruby vectors.rb

# -- PT-Scotch: the ordering of a grid, by derived types and operators of its own.
awk 'BEGIN { n = 60; print 0; print n * n, 4 * n * (n - 1); print "0 000"
  for (i = 0; i < n; i++) for (j = 0; j < n; j++) { k = 0; list = ""
    if (i > 0) { k++; list = list " " (i - 1) * n + j }
    if (i < n - 1) { k++; list = list " " (i + 1) * n + j }
    if (j > 0) { k++; list = list " " i * n + j - 1 }
    if (j < n - 1) { k++; list = list " " i * n + j + 1 }
    print k list } }' >grid.grf
tables() { grep -E '^[SO]'; }
both "PT-Scotch, a graph" tables 4 dgtst grid.grf -
# It differs from run to run, also without hopbine: all vertices are in it once.
vertices() { awk 'NF == 2 { print $2 }' | sort -n; }
both "PT-Scotch, its ordering" vertices 4 dgord grid.grf -

# -- petsc4py: three solvers on a distributed grid.
cat >poisson.py <<'EOF'
import petsc4py

petsc4py.init(["x", "-ksp_monitor_short"])
from petsc4py import PETSc
da = PETSc.DMDA().create([20, 20], stencil_width=1)
A = da.createMatrix()
start, end = A.getOwnershipRange()
lgmap = da.getLGMap()
(xs, xe), (ys, ye) = da.getRanges()
row, col = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for j in range(ys, ye):
    for i in range(xs, xe):
        row.index = (i, j)
        for at, value in (((i, j), 4), ((i - 1, j), -1), ((i + 1, j), -1), ((i, j - 1), -1), ((i, j + 1), -1)):
            if 0 <= at[0] < 20 and 0 <= at[1] < 20:
                col.index = at
                A.setValueStencil(row, col, value)
A.assemble()
x, b = A.createVecs()
b.set(1.0)
for kind in "cg", "pipecg", "gmres":
    x.set(0.0)
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setType(kind)
    ksp.getPC().setType("bjacobi")
    ksp.setTolerances(rtol=1e-6)
    ksp.solve(b, x)
    PETSc.Sys.Print("solved by %s in %d: %.6f" % (kind, ksp.getIterationNumber(), x.norm()))
EOF
petsc_modules=$(echo /usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages)
PYTHONPATH=$petsc_modules both "petsc4py" solved 3 /usr/bin/python3 poisson.py

# -- mpi4py: Python's collectives on numpy's arrays, in place, on parts and with derived types.
cat >arrays.py <<'EOF'
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
half = world.Split(world.rank % 2, world.rank)
for comm in world, half, world.Dup(), MPI.COMM_SELF:
    for dtype in "i", "d", "F", "b", "H":
        for n in 1, 17, 5000:
            mine = (np.arange(n) % 5 + comm.rank).astype(dtype)
            total = np.zeros(n, dtype)
            comm.Allreduce(mine, total)
            assert (total == sum((np.arange(n) % 5 + r).astype(dtype) for r in range(comm.size)).astype(dtype)).all()
            everyone = np.zeros((comm.size, n), dtype)
            comm.Allgather(mine, everyone)
            assert all((everyone[r] == (np.arange(n) % 5 + r).astype(dtype)).all() for r in range(comm.size))
            turned = np.zeros_like(everyone)
            comm.Alltoall(everyone, turned)
            assert (turned == everyone[comm.rank]).all()
            got = np.zeros_like(everyone) if comm.rank == 0 else None
            comm.Gather(mine, got, root=0)
            comm.Scatter(got, total, root=0)
            assert (total == mine).all()
            comm.Bcast(mine, root=comm.size - 1)
            assert (mine == (np.arange(n) % 5 + comm.size - 1).astype(dtype)).all()
    assert comm.allreduce({comm.rank}, op=lambda a, b: a | b) == set(range(comm.size))
    assert comm.allreduce((comm.rank, comm.rank), op=MPI.MAXLOC)[0] == comm.size - 1
    comm.Barrier()
if world.rank == 0:
    print("arrays are right")
EOF
right() { grep right; }
both "mpi4py, arrays" right 3 /usr/bin/python3 arrays.py
rings() { grep -E 'passed|ring|Hello' | sed 's/[0-9.]* seconds//; s/ in .*//' | sort; }
both "mpi4py, its own" rings 3 /usr/bin/python3 -m mpi4py.bench helloworld
# Its suite is in its sources; what starts further processes is left out.
version=$(/usr/bin/python3 -c 'import mpi4py; print(mpi4py.__version__)' 2>/dev/null || true)
if [ "$version" ] && pip download -q --no-deps --no-binary :all: "mpi4py==$version" && tar xf mpi4py-*.tar.gz; then
  # Both ranks write at once, and not whole lines.
  suite() { grep -aoE 'Ran [0-9]+ tests|OK|\(skipped=[0-9]+\)|FAILED.*' | sort; }
  limit=900
  both "mpi4py, its suite" suite 2 /usr/bin/python3 mpi4py-*/test/runtests.py --no-builddir -e spawn -e dynproc -q
  limit=120
else
  left_out "mpi4py, its suite" "its sources cannot be had"
fi

# -- mpi4py-fft: transforms of distributed arrays and back, by derived types and alltoallw.
cat >fft.py <<'EOF'
import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray
for shape in (12, 15, 16), (8, 9):
    fft = PFFT(MPI.COMM_WORLD, shape, dtype="d")
    u = newDistArray(fft, False)
    u[:] = np.random.default_rng(MPI.COMM_WORLD.rank).random(u.shape)
    back = fft.backward(fft.forward(u.copy()).copy())
    assert np.allclose(back, u)
if MPI.COMM_WORLD.rank == 0:
    print("transforms are right")
EOF
both "mpi4py-fft" right 3 /usr/bin/python3 fft.py

# -- h5py: groups and attributes by all ranks, a dataset by each its part.
cat >h5.py <<'EOF'
import h5py
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
with h5py.File("parts.h5", "w", driver="mpio", comm=world) as file:
    parts = file.create_dataset("parts", (world.size, 100), dtype="d")
    with parts.collective:
        parts[world.rank] = np.arange(100) + world.rank
    file.attrs["ranks"] = world.size
with h5py.File("parts.h5", "r", driver="mpio", comm=world) as file:
    other = (world.rank + 1) % world.size
    assert (file["parts"][other] == np.arange(100) + other).all() and file.attrs["ranks"] == world.size
if world.rank == 0:
    print("parts are right")
EOF
both "h5py" right 3 /usr/bin/python3 h5.py
fi

[ $ran -gt 0 ] || exit 3
[ $all_served -gt 0 ] || { echo "hopbine has served no call of any of them" >&2; exit 1; }
exit $failed
