"""DOLFINx: Poisson's equation by finite elements on a distributed mesh."""
import numpy as np
import ufl
from dolfinx import fem, mesh
from dolfinx.fem.petsc import LinearProblem
from mpi4py import MPI
square = mesh.create_unit_square(MPI.COMM_WORLD, 48, 48)
space = fem.FunctionSpace(square, ("CG", 2))
x, u, v = ufl.SpatialCoordinate(square), ufl.TrialFunction(space), ufl.TestFunction(space)
square.topology.create_connectivity(1, 2)
edge = fem.locate_dofs_topological(space, 1, mesh.exterior_facet_indices(square.topology))
fixed = fem.dirichletbc(np.array(0.0), edge, space)
options = {"ksp_type": "cg", "pc_type": "jacobi", "ksp_rtol": 1e-10}
problem = LinearProblem(
    ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, ufl.sin(3 * x[0]) * v * ufl.dx, [fixed], petsc_options=options
)
solution = problem.solve()
norm = square.comm.allreduce(fem.assemble_scalar(fem.form(solution**2 * ufl.dx))) ** 0.5
if square.comm.rank == 0:
    print("solved: %.10f" % norm)
