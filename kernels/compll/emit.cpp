#include "kernels/compll/emit.hpp"

#include <stdexcept>

namespace hipress::compll {

std::string emit(const Program& program, const std::string& origin) {
  if (!program.encoder) throw std::invalid_argument("a program without an encoder");
  if (program.quantizer) return emit_quantizer(program, origin);
  if (is_selector(program)) return emit_selector(program, origin);
  return emit_arrays(program, origin);
}

bool runs_on_gpus(const Program& program) { return program.quantizer || is_selector(program); }

}  // namespace hipress::compll
