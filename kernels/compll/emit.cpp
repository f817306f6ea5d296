#include "kernels/compll/emit.hpp"

#include <stdexcept>

namespace hipress::compll {

std::string emit(const Program& program, const io::Digest& sources) {
  if (!program.encoder) throw std::invalid_argument("a program without an encoder");
  if (program.block >= 0) return emit_blocks(program, sources);
  if (program.quantizer) return emit_quantizer(program, sources);
  if (is_sparsifier(program)) return emit_sparsifier(program, sources);
  return emit_arrays(program, sources);
}

bool runs_on_gpus(const Program& program) { return program.quantizer || is_sparsifier(program); }

}  // namespace hipress::compll
