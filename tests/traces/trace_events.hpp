#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/model.hpp"
#include "models/traced.hpp"
#include "traces/byte_stream.hpp"
#include "traces/make_model.hpp"
#include "traces/trace_reader.hpp"

/// Made-up traces of PyTorch's profiler, and what is read from them. Times are in microseconds.
namespace hipress::traces {

using nlohmann::json;

inline const std::string kEvaluationOf = "autograd::engine::evaluate_function: ";
inline const std::string kAccumulateGrad = "torch::autograd::AccumulateGrad";

inline json event(const std::string& category, const std::string& name, double start_us,
                  double length_us, int thread, json arguments = json::object(),
                  const json& process = 1) {
  return {{"ph", "X"},     {"cat", category}, {"name", name},     {"pid", process},
          {"tid", thread}, {"ts", start_us},  {"dur", length_us}, {"args", std::move(arguments)}};
}

/// Arguments of an operator with one tensor.
inline json tensor(const std::vector<std::int64_t>& shape, const std::string& dtype = "float") {
  return {{"Input Dims", json::array({shape})}, {"Input type", json::array({dtype})}};
}

inline std::string text_of(const json& events, std::int64_t world_size = 0) {
  json whole = {{"traceEvents", events}};
  if (world_size > 0) whole["distributedInfo"] = {{"world_size", world_size}};
  return whole.dump();
}

/// Events of a job, in the order in which its CPU creates them.
class TraceEvents {
 public:
  const json& events() const { return all_; }

 protected:
  static constexpr int kComputes = 7, kCommunicates = 20;  // streams of the GPU

  void add(const std::string& category, const std::string& name, double start_us, double length_us,
           int thread, json arguments = json::object()) {
    all_.push_back(event(category, name, start_us, length_us, thread, std::move(arguments)));
  }

  /// Launches a kernel now. It runs as soon as its stream is free. Returns the time of its end.
  double launch(const std::string& name, double length_us, int thread, int stream,
                double not_before_us, json arguments = json::object()) {
    const int id = ++correlation_;
    add(runtime_, "launch", now_, 2, thread, {{"correlation", id}});
    double& free = stream == kComputes ? compute_ : communication_;
    const double start = std::max({free, not_before_us, now_ + 5});
    arguments["correlation"] = id;
    add("kernel", name, start, length_us, stream, std::move(arguments));
    now_ += 2;
    return free = start + length_us;
  }

  /// Adds the AccumulateGrad of a gradient. With its launches it takes 90 us.
  void accumulate(int thread, json arguments = json::object()) {
    add("cpu_op", kEvaluationOf + kAccumulateGrad, now_, 90, thread);
    add("cpu_op", kAccumulateGrad, now_ + 1, 4, thread, std::move(arguments));
    now_ += 20;
  }

  json all_ = json::array();
  std::string runtime_ = "cuda_runtime";
  double now_ = 0;
  double compute_ = 0, communication_ = 0;  ///< times at which the streams become free
  int correlation_ = 0;
};

/// A trace, the model made from it, and the importer's messages.
struct Read {
  Imported trace;
  ImportedModel imported;
  std::string said;

  const models::Model& model() const { return imported.model; }
  const models::Traced& traced() const { return imported.traced.value(); }
  const Sharding& sharding() const { return imported.sharding.value(); }
};

inline Read read(Imported trace, const ImportOptions& options = {}) {
  Read made{.trace = std::move(trace), .imported = {}, .said = {}};
  std::vector<std::string> diagnostics;
  made.imported = model_of(made.trace, "job", options, diagnostics);
  for (const auto* sentences : {&made.trace.not_told, &diagnostics}) {
    for (const std::string& sentence : *sentences) made.said += sentence + "\n";
  }
  return made;
}

inline Read read_text(const std::string& text, const ImportOptions& options = {}) {
  return read(read_trace(*stream_of(text)), options);
}

}  // namespace hipress::traces
