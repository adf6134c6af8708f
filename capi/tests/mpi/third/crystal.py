"""GPAW: silicon in plane waves, hydrogen on a grid; energies and forces."""
from ase.build import bulk, molecule
from gpaw import GPAW, PW
from gpaw.mpi import world
silicon, hydrogen = bulk("Si"), molecule("H2")
hydrogen.center(vacuum=2.5)
silicon.calc = GPAW(mode=PW(200), kpts=(2, 2, 2), txt=None)
hydrogen.calc = GPAW(mode="fd", h=0.3, txt=None)
for atoms in silicon, hydrogen:
    energy, force = atoms.get_potential_energy(), abs(atoms.get_forces()).max()
    if world.rank == 0:
        print("energy %.5f, force %.3f" % (energy, force))
