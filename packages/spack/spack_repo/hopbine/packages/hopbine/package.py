# A Spack recipe, in a package repository of its own:
#
#     spack repo add packages/spack/spack_repo/hopbine
#     spack dev-build hopbine@0.1.0            at the top of the source: there is no public archive to fetch
#
# On compute nodes without a network: in an unpacked hopbine-VERSION-vendored.tar.gz (ci/vendored.sh).
from spack.package import *


class Hopbine(Package):
    """MPI-style collectives along the links of a torus, for Fugaku's Tofu network and for its emulation anywhere."""

    license("MIT OR Apache-2.0")

    version("0.1.0")

    variant("mpi", default=True, description="What stands before this MPI: the library to preload, and HB_ calls")
    variant("messages", default=True, when="+mpi", description="Link the command to the MPI, whose mpirun starts ranks")
    variant("emulator", default=True, description="The emulated Tofu device")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("mpi", when="+mpi")

    def install(self, spec, prefix):
        env["PREFIX"] = prefix
        env["FC"] = self.compiler.fc
        env["EMULATOR"] = "yes" if "+emulator" in spec else "no"
        # As the scripts for Fugaku do; of other targets Spack's names are not LLVM's.
        if spec.satisfies("target=a64fx"):
            env["RUSTFLAGS"] = "-C target-cpu=a64fx"
        if "+mpi" in spec:
            env["MPICC"] = spec["mpi"].mpicc
            env["MPIFC"] = spec["mpi"].mpifc
            env["MESSAGES"] = "yes" if "+messages" in spec else "no"
        Executable("./install.sh")()

    def test_allreduce(self):
        """a verified allreduce on an emulated torus"""
        if "+emulator" not in self.spec:
            raise SkipTest("built without the emulated device")
        which(self.prefix.bin.hopbine)("run", "allreduce", "--torus", "2x2", "--bytes", "1KiB")
