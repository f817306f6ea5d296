// Compiled for one lane at a time, for any processor: the reference path of tests.
#include "kernels/lowrank/loops_body.hpp"

namespace hipress::kernels::lowrank {

const Loops scalar_loops = loops_for<float>();

}  // namespace hipress::kernels::lowrank
