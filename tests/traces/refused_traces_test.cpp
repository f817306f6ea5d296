// Tests of files that are not a trace of one rank's training, and of traces whose gradients no
// model can have. Each is refused with a message that names the reason.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "models/model.hpp"
#include "tests/traces/trace_events.hpp"
#include "traces/chakra_schema.hpp"
#include "traces/protobuf.hpp"

namespace hipress::traces {
namespace {

using namespace std::string_literals;
using Catch::Matchers::Contains;

/// Identity and start of a rank's events, in a file of several ranks.
struct Rank {
  json pid = 1000;
  int device = 0, number = 0;
  int steps = 2;
  bool has_steps = true, has_gpu = true;
  double since_us = 1e6;
};

/// Events of steps of 100 ms, with two gradients of 1000 and 64 elements and an all-reduce of both.
json events_of(const Rank& rank) {
  json all = json::array();
  const auto add = [&](const std::string& category, const std::string& name, int tid,
                       double start_us, double length_us, json arguments = json::object()) {
    const json& process = category == "kernel" ? json(rank.device) : rank.pid;
    all.push_back(event(category, name, start_us, length_us, tid, std::move(arguments), process));
  };
  for (int step = 0; step < rank.steps; ++step) {
    double now = rank.since_us + step * 1e5;
    if (rank.has_steps) {
      add("user_annotation", fmt::format("ProfilerStep#{}", 5 + step), 1, now, 99990);
    }
    int correlation = rank.number * 1000 + step * 10;
    const auto launch = [&](const std::string& name, double length_us, int tid, json arguments) {
      if (!rank.has_gpu) return;
      add("cuda_runtime", "cudaLaunchKernel", tid, now + 2, 2, {{"correlation", ++correlation}});
      arguments.update({{"correlation", correlation}, {"device", rank.device}});
      add("kernel", name, 7, now + 10, length_us, arguments);
    };
    now += 10;
    add("cpu_op", "aten::linear", 1, now, 20);
    launch("gemm", 5000, 1, json::object());
    for (const int elements : {1000, 64}) {
      now += 10000;
      add("cpu_op", kEvaluationOf + "AddmmBackward0", 2, now, 90);
      launch("gemm", 5000, 2, json::object());
      now += 100;
      add("cpu_op", kEvaluationOf + kAccumulateGrad, 2, now, 90);
      add("cpu_op", kAccumulateGrad, 2, now + 1, 50, tensor({elements}));
    }
    launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8000, 2,
           {{"Collective name", "allreduce"}, {"In msg nelems", 1064}, {"dtype", "Float"}});
    now += 20000;
    add("user_annotation", "Optimizer.step#SGD.step", 1, now, 50);
  }
  return all;
}

json merged(const Rank& one, const Rank& other) {
  json events = events_of(one);
  for (const json& more : events_of(other)) events.push_back(more);
  return events;
}

Imported read(const std::string& text) { return read_trace(*stream_of(text)); }

models::Model model(const std::string& text, bool every_all_reduce = false) {
  std::vector<std::string> diagnostics;
  return model_of(read(text), "job", {.every_all_reduce = every_all_reduce}, diagnostics).model;
}

TEST_CASE("one rank's file is its model") {
  CHECK(models::total_elements(model(text_of(events_of({})))) == 1064);
  CHECK(models::total_elements(model(text_of(events_of({.pid = "rank 0"})))) == 1064);
}

TEST_CASE("the files of two ranks in one are refused, with what shows it") {
  CHECK_THROWS_WITH(read(text_of(merged({}, {.pid = 2000, .device = 1, .number = 1}))),
                    Contains("several ranks") && Contains("events of 2 processes train") &&
                        Contains("ProfilerStep#5 occurs twice") &&
                        Contains("give the file of one"));
  // Several ranks are in one file, as tools that prepare traces for viewers merge them.
  CHECK_THROWS_WITH(read(text_of(merged({.pid = "rank0 1000"}, {.pid = "rank1 1000"}))),
                    Contains("2 processes"));
  CHECK_THROWS_WITH(read(text_of(merged({.has_steps = false, .has_gpu = false},
                                        {.pid = 1001000, .has_steps = false, .has_gpu = false}))),
                    Contains("2 processes"));
  // In containers, all ranks may have the same pid.
  CHECK_THROWS_WITH(read(text_of(merged({}, {.device = 1, .number = 1}))),
                    Contains("ProfilerStep#5 occurs twice") && Contains("2 devices"));
  CHECK_THROWS_WITH(read(text_of(merged({.has_gpu = false}, {.has_gpu = false, .since_us = 5e6}))),
                    Contains("ProfilerStep#5 occurs twice"));
  CHECK_THROWS_WITH(
      read(text_of(merged({.has_steps = false}, {.device = 1, .number = 1, .has_steps = false}))),
      Contains("2 devices") && Contains("one process with several GPUs"));
}

TEST_CASE("files that say that two ranks recorded them are refused") {
  const json events = events_of({});
  const json both = {{{"rank", 0}, {"world_size", 2}}, {{"rank", 1}, {"world_size", 2}}};
  for (const json& info : {both, json{{"a", both[0]}, {"b", both[1]}}}) {
    CHECK_THROWS_WITH(read(json{{"traceEvents", events}, {"distributedInfo", info}}.dump()),
                      Contains("ranks 0 and 1 say"));
  }
  const json one = {{"rank", 3}, {"world_size", 8}};
  CHECK(read(json{{"traceEvents", events}, {"distributedInfo", one}}.dump()).world_size == 8);
}

TEST_CASE("traces one after the other, or in a list, are refused") {
  const std::string one = text_of(events_of({}));
  CHECK_THROWS_WITH(read(one + one), Contains("more than one JSON document"));
  CHECK_THROWS_WITH(read(one + "\n" + one), Contains("more than one JSON document"));
  CHECK_THROWS_WITH(read("[" + one + "," + one + "]"), Contains("list of several traces"));
}

TEST_CASE("processes that load data are no ranks") {
  json events = events_of({});
  for (int worker = 1; worker <= 4; ++worker) {
    for (int i = 0; i < 5; ++i) {
      events.push_back(event("cpu_op", "aten::stack", 1e6 + i * 1e4, 500, worker, json::object(),
                             1000 + worker));
    }
    events.push_back(
        event("python_function", "worker_loop", 1e6, 1e5, worker, json::object(), 1000 + worker));
  }
  CHECK(models::total_elements(model(text_of(events))) == 1064);
}

json node(int id, int parent, const std::string& name, json shapes = json::array(),
          json types = json::array()) {
  return {{"id", id},
          {"parent", parent},
          {"name", name},
          {"input_shapes", std::move(shapes)},
          {"input_types", std::move(types)}};
}

/// An execution trace whose IDs begin with `first`.
json nodes_from(int first) {
  const json shapes = {{1000}}, types = {"Tensor(float)"};
  return {node(first, 0, "[pytorch|profiler|execution_trace|process]"),
          node(first + 1, first, kEvaluationOf + kAccumulateGrad),
          node(first + 2, first + 1, kAccumulateGrad, shapes, types),
          node(first + 3, first, "aten::linear")};
}

json nodes_of(const json& one, const json& other) {
  json all = one;
  for (const json& more : other) all.push_back(more);
  return {{"nodes", all}};
}

TEST_CASE("execution traces of two ranks are refused") {
  CHECK(models::total_elements(model(nodes_of(nodes_from(1), {}).dump())) == 1000);
  CHECK_THROWS_WITH(read(nodes_of(nodes_from(1), nodes_from(1)).dump()),
                    Contains("several ranks") && Contains("2 nodes are of processes"));
  CHECK_THROWS_WITH(read(nodes_of(nodes_from(1), nodes_from(101)).dump()),
                    Contains("2 nodes are of processes"));
  json headless = nodes_from(1);
  headless.erase(0);
  CHECK_THROWS_WITH(read(nodes_of(headless, headless).dump()),
                    Contains("node 2 occurs more than once"));
}

TEST_CASE("an event that ends before it begins is refused by its name") {
  for (const std::string& name :
       {"ProfilerStep#6"s, kAccumulateGrad, "gemm"s, "Optimizer.step#SGD.step"s}) {
    CAPTURE(name);
    json events = events_of({});
    for (json& one : events) {
      if (one["name"] == name) one["dur"] = -2001;
    }
    CHECK_THROWS_WITH(read(text_of(events)), Contains("event '" + name + "' before byte") &&
                                                 Contains("ends 2.001ms before it begins"));
  }
}

TEST_CASE("a kernel that begins well before its launch is refused") {
  json events = events_of({});
  const auto shifted = [&](double by_us) {
    json moved = events;
    for (json& one : moved) {
      if (one["cat"] == "kernel") one["ts"] = one["ts"].get<double>() - by_us;
    }
    return text_of(moved);
  };
  CHECK(models::total_elements(model(shifted(500))) == 1064);  // largest accepted clock difference
  CHECK_THROWS_WITH(read(shifted(2.5e6)),
                    Contains("begins 2.5s before the CPU launches it") && Contains("clocks"));
}

TEST_CASE("times that cannot be are refused") {
  json events = events_of({});
  for (json& one : events) {
    for (const char* key : {"ts", "dur"}) one[key] = one[key].get<double>() * 1e-6;
  }
  CHECK_THROWS_WITH(read(text_of(events)), Contains("too short") && Contains("microseconds"));
  for (const json& time : {json("nan"), json("NaN"), json(1e300), json(18446744073709551000.0),
                           json(std::uint64_t{18446744073709551615u}), json("soon")}) {
    CAPTURE(time);
    json bad = events_of({});
    bad[1]["ts"] = time;
    CHECK_THROWS_WITH(read(text_of(bad)), Contains("ts and dur must be microseconds"));
  }
  json overlapping = events_of({});
  overlapping[0]["dur"] = 180000;  // it ends 80 ms after the next step begins
  CHECK_THROWS_WITH(read(text_of(overlapping)),
                    Contains("ProfilerStep#5 ends 80ms after ProfilerStep#6 begins"));
}

TEST_CASE("whatever one event's time says, no time that is read is below 0") {
  const json events = events_of({});
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (const double by_us : {-5e6, -1e6, -3e4, -1e4, 1e4, 3e4, 1e6}) {
      json moved = events;
      moved[i]["ts"] = moved[i]["ts"].get<double>() + by_us;
      try {
        for (const TracedStep& step : read(text_of(moved)).steps) {
          for (const auto& time :
               {step.length_s, step.forward_s, step.compute_s, step.communication_s,
                step.exposed_communication_s, step.idle_s}) {
            if (time.value_or(0) < 0) FAIL(events[i].dump() << " moved by " << by_us);
          }
        }
      } catch (const io::InputError&) {
      }
    }
  }
}

const std::string kWild = HIPRESS_SOURCE_DIR "/tests/data/traces/wild/";

std::string refusal_of(const Imported& trace, bool every_all_reduce = false) {
  std::vector<std::string> diagnostics;
  try {
    model_of(trace, "job", {.every_all_reduce = every_all_reduce}, diagnostics);
  } catch (const io::Unmet& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("sparse gradients are refused, with what travels") {
  // The embedding has 1000 rows of 16. A step looks up 40 of them: 40·16 values, 40 indices.
  for (const char* file : {"sparse_bag.json.gz", "sparse_execution.json.gz"}) {
    CAPTURE(file);
    for (const TracedStep& step : read_trace(kWild + file).steps) {
      CHECK_FALSE(step.collective_elements());
    }
    CHECK_THAT(refusal_of(read_trace(kWild + file)),
               Contains("gradient2 of") && Contains("is sparse: 640 values and 40 indices") &&
                   Contains("not 16000 elements"));
  }
  // This trace has no shapes.
  CHECK_THAT(refusal_of(read_trace(kWild + "sparse_array.json.gz")),
             Contains("gradient2 of ProfilerStep#1 is sparse, and only dense gradients"));
}

TEST_CASE("a sparse gradient that is added to another is sparse") {
  json events = events_of({});
  const auto add = [&](const std::string& name, double at, json shapes = json::array()) {
    events.push_back(event("cpu_op", name, at, 1, 2, {{"Input Dims", std::move(shapes)}}, 1000));
  };
  // Add operators to the first step's second AccumulateGrad, which begins at 1020211 us.
  add("aten::_sparse_coo_tensor_unsafe", 1020150, {{1, 8}, {8, 16}});
  add("aten::add_", 1020215, {{64}, {64}});
  add("aten::_values", 1020216, {{64}});
  CHECK_THAT(refusal_of(read(text_of(events))),
             Contains("gradient1 of ProfilerStep#5 is sparse: 128 values and 8 indices travel"));
  // A sparse tensor outside of AccumulateGrad is not a gradient.
  events = events_of({});
  add("aten::_values", 1020150, {{64}});
  CHECK(models::total_elements(model(text_of(events))) == 1064);
}

std::string attribute(const std::string& name, std::uint32_t field, std::uint64_t value) {
  FieldWriter writer;
  writer.bytes(chakra::kAttributeName, name);
  writer.integer(field, value);
  return writer.message();
}

std::string chakra_node(std::uint64_t id, const std::string& name, std::uint64_t type,
                        const std::vector<std::string>& attributes = {}) {
  FieldWriter writer;
  writer.integer(chakra::kId, id);
  writer.bytes(chakra::kName, name);
  writer.integer(chakra::kType, type);
  for (const std::string& one : attributes) writer.bytes(chakra::kAttribute, one);
  return delimited(writer.message());
}

std::string collective(std::uint64_t id, std::uint64_t kind, std::uint64_t bytes) {
  return chakra_node(id, "collective", chakra::kCollectiveNode,
                     {attribute("comm_type", chakra::kInteger, kind),
                      attribute("comm_size", chakra::kInteger, bytes)});
}

std::string metadata() {
  FieldWriter writer;
  writer.bytes(chakra::kVersion, "0.0.4");
  return delimited(writer.message());
}

TEST_CASE("generated traces say what they hold") {
  constexpr std::uint64_t kMib = 1 << 20;
  const char* const kinds[] = {"",           "reduce",         "all-gather",
                               "gather",     "scatter",        "broadcast",
                               "all-to-all", "reduce-scatter", "reduce-scatter"};
  for (std::uint64_t kind = 1; kind < std::size(kinds); ++kind) {
    const Imported trace = read(metadata() + collective(1, kind, kMib) + collective(2, kind, kMib));
    CHECK(trace.format == "Chakra execution trace");
    CHECK_THAT(refusal_of(trace), Contains(fmt::format("holds 2 {}s (2MiB)", kinds[kind])) &&
                                      Contains("no all-reduce") && !Contains("ProfilerActivity"));
  }
  CHECK_THAT(refusal_of(read(metadata() + collective(1, 9, 0))), Contains("holds 1 barrier,"));
  CHECK_THAT(refusal_of(read(metadata() + collective(1, 77, 0))),
             Contains("1 collective of unknown kind"));
  CHECK_THAT(refusal_of(read(metadata() + chakra_node(1, "s", chakra::kSendNode) +
                             chakra_node(2, "r", chakra::kReceiveNode))),
             Contains("1 receive, 1 send"));
  CHECK_THAT(refusal_of(read(metadata() + collective(1, 2, kMib) + collective(2, 7, kMib))),
             Contains("sharded job") && Contains("'layer'") && Contains("`schedule` fsdp"));
  // A node of PyTorch, but without AccumulateGrad.
  CHECK_THAT(refusal_of(read(metadata() + collective(1, 2, kMib) +
                             chakra_node(2, "aten::mm", chakra::kComputation))),
             Contains("2 events, 1 all-gather (1MiB)") && Contains("its backward pass, too"));
  CHECK_THROWS_WITH(read(metadata() + chakra_node(1, "gemm", chakra::kComputation)),
                    Contains("Chakra execution trace of 1 nodes, of which none communicates"));
}

TEST_CASE("a model of a generated trace says which collectives it leaves out") {
  const std::string text =
      metadata() + collective(1, 2, 1 << 20) + collective(2, 7, 1 << 20) + collective(3, 0, 1024);
  CHECK_THAT(refusal_of(read(text)), Contains("`every_all_reduce`"));
  std::vector<std::string> diagnostics;
  const auto imported = model_of(read(text), "job", {.every_all_reduce = true}, diagnostics);
  CHECK(models::total_elements(imported.model) == 256);  // 1024 bytes in fp32
  CHECK_THAT(fmt::format("{}", fmt::join(diagnostics, "\n")),
             Contains("besides all-reduces: 1 all-gather (1MiB), 1 reduce-scatter (1MiB)"));
}

TEST_CASE("traces of Chakra's one after the other, and with sparse gradients, are refused") {
  const std::string one = metadata() + collective(1, 0, 1024);
  CHECK_THROWS_WITH(read(one + one), Contains("message 3: begins another trace"));
  const std::string sparse = one + chakra_node(2, "aten::embedding_sparse_backward", 4);
  CHECK_THAT(refusal_of(read(sparse), true),
             Contains("aten::embedding_sparse_backward makes a sparse gradient"));
}

TEST_CASE("an array of events may lack its closing bracket") {
  std::string text = events_of({}).dump();
  text.pop_back();
  for (const char* end : {"", "\n", ",", ",\n"}) {
    CAPTURE(end);
    const Imported trace = read(text + end);
    CHECK(models::total_elements(model(text + end)) == 1064);
    REQUIRE_FALSE(trace.not_told.empty());
    CHECK_THAT(trace.not_told.back(), Contains("no closing bracket"));
  }
  CHECK(read(text + "]").not_told.empty());
  // The file was cut off within an event, or within an object around the array.
  CHECK_THROWS_WITH(read(text.substr(0, text.size() - 5)), Contains("cut off"));
  CHECK_THROWS_WITH(read(text + R"(,"ab)"), Contains("cut off"));
  CHECK_THROWS_WITH(read(R"({"traceEvents":)" + text), Contains("cut off"));
}

TEST_CASE("what other programs write into Chrome's format is named") {
  const auto named = [](const std::string& label) {
    return R"([{"name":"process_name","ph":"M","pid":0,"args":{"name":")" + label + R"("}}])";
  };
  const std::string horovod =
      "[\n"
      R"({"name":"process_name","ph":"M","pid":0,"args":{"name":"grad_0"}},)"
      "\n"
      R"({"ph":"B","name":"NEGOTIATE_ALLREDUCE","ts":0,"pid":0},)"
      "\n";
  CHECK_THROWS_WITH(read(horovod), Contains("is a timeline of Horovod") && !Contains("cut off"));
  CHECK_THROWS_WITH(read(named("/device:TPU:0")), Contains("TensorFlow's or JAX's"));
  CHECK_THROWS_WITH(read(named("predicted node 0")), Contains("hipress-sim"));
  CHECK_THROWS_WITH(read(named("renderer")), Contains("none of its events is PyTorch's"));
}

TEST_CASE("files of other kinds are named instead of parsed") {
  struct Row {
    std::string text;
    const char* said;
  };
  const Row rows[] = {
      {"PK\3\4\24\0\0\0\10\0trace.json"s, "a ZIP archive; unpack it"},
      {"\x28\xb5\x2f\xfd\4\0"s, "compressed by zstd; unpack it"},
      {"\x1f\x8b\x08\0"s, "compressed by gzip; unpack it"},  // within another gzip file
      {std::string(257, 'x') + "ustar\0"s + "00trace.json", "a tar archive; unpack it"},
      {"<html>", "a page of HTML"},
      {"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
      {"schema: hipress.profile/1\n", "hipress-profile"},
      {"name: vgg\ngradients:\n  - {name: a, elements: 4}\n", "a model or a plan"},
      {"fc,1000,y,4\nfc2,10,n,1\n", "is a plan"},
      {"name,elements\n", "a list of gradients"},
      {"hello\n", "is text and no JSON"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.said);
    CHECK_THROWS_WITH(read(row.text), Contains(row.said) && !Contains("wire type"));
  }
}

TEST_CASE("Chakra's traces as JSON are named, with what to give instead") {
  const std::string node = R"({"Id": 1, "Name": "allreduce", "NodeType": 7})";
  const std::string typed =
      R"({"id": "1", "name": "all", "type": "COMM_COLL_NODE", "ctrlDeps": []})";
  for (const std::string& text :
       {R"({"workload_graph": [)" + node + "]}", R"({"nodes": [)" + node + "]}",
        R"({"nodes": [)" + typed + "]}", "[" + typed + "]", typed}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(read(text), Contains("Chakra's JSON") && Contains("give the .et file"));
  }
  // Chakra's jsonizer writes one document after another, with or without a newline between them.
  for (const std::string between : {"", "\n"}) {
    CHECK_THROWS_WITH(read(R"({"version": "0.0.4"})" + between + typed + between + typed),
                      Contains("several JSON documents") && Contains("Chakra's jsonizer") &&
                          Contains("give the .et file"));
  }
  CHECK_THROWS_WITH(read("{} and no more JSON"s), Contains("is no JSON"));
}

}  // namespace
}  // namespace hipress::traces
