// Fuzzes the readers of traces of training jobs. They must throw an error or return a trace, and do
// the same whether the bytes come at once or in pieces. A model of the trace must be writable.
//
//   build/fuzz/tests/traces/fuzz_trace -max_total_time=600 -max_len=65536 CORPUS

#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "io/error.hpp"
#include "traces/make_model.hpp"
#include "traces/trace_reader.hpp"

namespace {

using namespace hipress;

std::optional<traces::Imported> read(std::string_view bytes, std::size_t piece) {
  try {
    return traces::read_trace(*traces::stream_of(bytes, piece));
  } catch (const io::InputError&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = read(bytes, 0);
  const auto pieces = read(bytes, std::size_t{1} + data[0] % 32);
  if (whole.has_value() != pieces.has_value()) std::abort();
  if (!whole) return 0;
  if (whole->steps.size() != pieces->steps.size() || whole->events != pieces->events) std::abort();
  std::vector<std::string> diagnostics;
  try {
    const traces::ImportedModel imported =
        traces::model_of(*whole, "job", {.every_all_reduce = true}, diagnostics);
    std::ostringstream out;
    traces::write_model_yaml(out, imported);
    if (models::total_elements(imported.model) < 1) std::abort();
  } catch (const io::Unmet&) {
  }
  return 0;
}
