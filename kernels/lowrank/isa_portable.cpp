// Compiled with the compiler's generic vectors of four floats, for any processor.
#include "kernels/lowrank/loops_body.hpp"

namespace hipress::kernels::lowrank {

const Loops portable_loops = loops_for<FloatVector>();

}  // namespace hipress::kernels::lowrank
