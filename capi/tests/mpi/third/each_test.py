"""mpi4py's own tests, one by one: the names of those that pass on this rank, in FILE.RANK.

    each_test.py TESTS FILE MODULE...

TESTS is the directory of the tests' modules. What has passed stays in the file if a later one ends the process.
"""

import sys
import unittest

sys.dont_write_bytecode = True
tests, file, *modules = sys.argv[1:]
sys.path.insert(0, tests)

from mpi4py import MPI  # noqa: E402


class Result(unittest.TestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        passed.write(f"{test.id()}\n")


with open(f"{file}.{MPI.COMM_WORLD.rank}", "w", buffering=1) as passed:
    result = Result()
    unittest.defaultTestLoader.loadTestsFromNames(modules).run(result)
for what, trace in result.errors + result.failures:
    print(f"{what.id()}\n{trace}", file=sys.stderr)
