// These programs are compiled for the building processor, and may not run on others.
#include "bench/handwritten/programs.hpp"

#include "bench/handwritten/dgc.hpp"
#include "bench/handwritten/onebit.hpp"
#include "bench/handwritten/tbq.hpp"
#include "bench/handwritten/terngrad.hpp"
#include "kernels/host/codec.hpp"
#include "kernels/host/quantizer_body.hpp"
#include "kernels/host/sparsifier_body.hpp"

namespace hipress::bench::handwritten {

namespace {

template <class Algorithm>
constexpr CompiledAlgorithm kProgram = host_quantizer<Algorithm, FloatVector>("handwritten",
                                                                              nullptr, 0);

template <class Algorithm>
constexpr CompiledAlgorithm kSparsifier = host_sparsifier<Algorithm, FloatVector>("handwritten",
                                                                                  nullptr, 0);

}  // namespace

std::unique_ptr<kernels::Codec> make_codec(std::string_view name) {
  const auto made = [](const CompiledAlgorithm& program, double parameter, double second = 0) {
    const double values[] = {parameter, second};
    return make_host_algorithm(program, values, best_isa());
  };
  if (name == "onebit") return made(kProgram<Onebit>, 0);
  if (name == "tbq") return made(kProgram<Tbq>, 0.5);
  if (name == "terngrad") return made(kProgram<Terngrad>, 2);
  if (name == "dgc") return made(kSparsifier<Dgc>, 0.01, 0.9);
  return nullptr;
}

}  // namespace hipress::bench::handwritten
