// Uses the header from C++: an allreduce and a non-blocking broadcast.
#include <hopbine.h>

#include <cstdio>
#include <vector>

int main() {
    hopbine_comm_t world = HOPBINE_COMM_NULL;
    int rank = 0, size = 0;
    if (hopbine_init(&world) != HOPBINE_SUCCESS) {
        std::fprintf(stderr, "%s\n", hopbine_last_error());
        return 1;
    }
    hopbine_comm_rank(world, &rank);
    hopbine_comm_size(world, &size);
    std::vector<double> values(1000, rank + 1.0);
    bool good = hopbine_allreduce(HOPBINE_IN_PLACE, values.data(), 1000, HOPBINE_DOUBLE, HOPBINE_SUM,
                                  world) == HOPBINE_SUCCESS;
    for (double value : values) good = good && value == size * (size + 1) / 2.0;
    hopbine_request_t request = HOPBINE_REQUEST_NULL;
    std::vector<int> told(3, rank);
    good = good && hopbine_ibcast(told.data(), 3, HOPBINE_INT32, size - 1, world, &request) == 0;
    good = good && hopbine_wait(&request) == HOPBINE_SUCCESS && told[2] == size - 1;
    good = hopbine_finalize() == HOPBINE_SUCCESS && good;
    if (rank == 0 && good) std::puts("all correct");
    return good ? 0 : 1;
}
