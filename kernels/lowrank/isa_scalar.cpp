// One lane at a time, for any processor: the plain path.
#include "kernels/lowrank/loops_body.hpp"

namespace hipress::kernels::lowrank {

const Loops scalar_loops = loops_for<float>();

}  // namespace hipress::kernels::lowrank
