#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "casync/graph_builder.hpp"
#include "casync/layout.hpp"
#include "casync/topology.hpp"
#include "tests/traces/one_message.hpp"
#include "traces/timeline.hpp"

namespace hipress::traces {
namespace {

using nlohmann::json;

std::string text(const casync::TaskGraph& graph, const std::vector<std::string>& names,
                 const std::vector<const Timeline*>& timelines) {
  std::ostringstream out;
  write_chrome_trace(out, graph, names, timelines);
  return out.str();
}

/// Model and plan that a trace names.
json subject_in(const casync::TaskGraph& graph, const Timeline& timeline,
                const TraceSubject& subject) {
  std::ostringstream out;
  write_chrome_trace(out, graph, {"fc6.weight"}, {&timeline}, subject);
  return json::parse(out.str()).value("otherData", json());
}

json events(const casync::TaskGraph& graph, const std::vector<const Timeline*>& timelines) {
  return json::parse(text(graph, {"fc6.weight"}, timelines)).at("traceEvents");
}

/// Events of one phase, in the order of the file.
std::vector<json> of_phase(const json& events, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

/// Names by (pid, tid): of processes, or of threads.
std::map<std::pair<int, int>, std::string> names(const json& events, const std::string& what) {
  std::map<std::pair<int, int>, std::string> found;
  for (const json& event : of_phase(events, "M")) {
    if (event.at("name") != what) continue;
    found[{event.at("pid"), event.value("tid", 0)}] = event.at("args").at("name");
  }
  return found;
}

TEST_CASE("messages of shards are in the lanes of gathers and of reductions") {
  models::Model model;
  model.gradients = {{.name = "a.weight", .elements = 64}, {.name = "b.weight", .elements = 64}};
  casync::Plan plan = {.nodes = 2, .algorithms = {}, .decisions = {{}, {}}};
  plan.schedule = casync::Schedule::parse("fsdp");
  plan.shards_by = "direct";
  const casync::TaskGraph graph = casync::expand(model, plan);
  const Timeline timeline = {.title = "predicted",
                             .start = std::vector<Picoseconds>(graph.tasks()),
                             .end = std::vector<Picoseconds>(graph.tasks())};
  std::ostringstream out;
  write_chrome_trace(out, graph, casync::unit_names(casync::make_layout(model, plan)), {&timeline});
  const json events = json::parse(out.str()).at("traceEvents");
  const auto lanes = names(events, "thread_name");
  std::map<std::string, int> sends;
  for (const json& event : of_phase(events, "X")) {
    if (event.at("cat") == "Send") ++sends[lanes.at({event.at("pid"), event.at("tid")})];
  }
  // Two layers are gathered twice and reduced once, on both nodes.
  CHECK(sends == std::map<std::string, int>{{"gather", 8}, {"reduce", 4}});
}

TEST_CASE("a trace is this text") {
  const Timeline predicted = predicted_one_message();
  // Lanes begin at these thread IDs: compute 0, codec 2^20, egress 2^21, ingress 3 * 2^20. Forward
  // takes no time and is left out. Recv takes none either, but the arrow ends there; the arrow's ID
  // is Recv's task ID, 4.
  const std::string expected = R"({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":1,"args":{"name":"predicted node 0"}},
{"ph":"M","name":"process_sort_index","pid":1,"args":{"sort_index":1}},
{"ph":"M","name":"thread_name","pid":1,"tid":0,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":1,"tid":1048576,"args":{"name":"codec"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":1048576,"args":{"sort_index":1048576}},
{"ph":"M","name":"thread_name","pid":1,"tid":2097152,"args":{"name":"egress"}},
{"ph":"M","name":"thread_sort_index","pid":1,"tid":2097152,"args":{"sort_index":2097152}},
{"ph":"M","name":"process_name","pid":2,"args":{"name":"predicted node 1"}},
{"ph":"M","name":"process_sort_index","pid":2,"args":{"sort_index":2}},
{"ph":"M","name":"thread_name","pid":2,"tid":1048576,"args":{"name":"codec"}},
{"ph":"M","name":"thread_sort_index","pid":2,"tid":1048576,"args":{"sort_index":1048576}},
{"ph":"M","name":"thread_name","pid":2,"tid":3145728,"args":{"name":"ingress"}},
{"ph":"M","name":"thread_sort_index","pid":2,"tid":3145728,"args":{"sort_index":3145728}},
{"ph":"X","name":"Backward fc6.weight","cat":"Backward","pid":1,"tid":0,"ts":0.0,"dur":2.0,"args":{"task":1,"gradient":"fc6.weight"}},
{"ph":"X","name":"Encode fc6.weight[2]","cat":"Encode","pid":1,"tid":1048576,"ts":2.0,"dur":0.5,"args":{"task":2,"gradient":"fc6.weight","partition":2,"elements":96}},
{"ph":"X","name":"Send fc6.weight[2]","cat":"Send","pid":1,"tid":2097152,"ts":2.5,"dur":1.000001,"args":{"task":3,"gradient":"fc6.weight","partition":2,"bytes":20,"to":1}},
{"ph":"s","name":"message","cat":"message","id":4,"pid":1,"tid":2097152,"ts":2.5,"bp":"e"},
{"ph":"X","name":"Recv fc6.weight[2]","cat":"Recv","pid":2,"tid":3145728,"ts":3.500001,"dur":0.0,"args":{"task":4,"gradient":"fc6.weight","partition":2,"bytes":20,"from":0}},
{"ph":"f","name":"message","cat":"message","id":4,"pid":2,"tid":3145728,"ts":3.500001,"bp":"e"},
{"ph":"X","name":"Decode fc6.weight[2]","cat":"Decode","pid":2,"tid":1048576,"ts":3.500001,"dur":0.25,"args":{"task":5,"gradient":"fc6.weight","partition":2,"elements":96}}
]}
)";
  CHECK(text(one_message(), {"fc6.weight"}, {&predicted}) == expected);
}

TEST_CASE("two timelines lie side by side, node by node") {
  const auto graph = one_message();
  const Timeline predicted = predicted_one_message();
  const Timeline measured = measured_one_message();
  const json trace = events(graph, {&predicted, &measured});
  CHECK(names(trace, "process_name") ==
        std::map<std::pair<int, int>, std::string>{{{1, 0}, "predicted node 0"},
                                                   {{2, 0}, "measured node 0"},
                                                   {{3, 0}, "predicted node 1"},
                                                   {{4, 0}, "measured node 1"}});
  // Encode takes 0.5 us in the prediction, and 1 us in the measurement.
  std::map<int, double> encode_us;
  for (const json& slice : of_phase(trace, "X")) {
    if (slice.at("cat") == "Encode") encode_us[slice.at("pid")] = slice.at("dur");
  }
  CHECK(encode_us == std::map<int, double>{{1, 0.5}, {2, 1.0}});
}

TEST_CASE("every message is an arrow of its own, within its timeline") {
  const auto graph = one_message();
  const Timeline predicted = predicted_one_message();
  const Timeline measured = measured_one_message();
  const json trace = events(graph, {&predicted, &measured});
  const auto starts = of_phase(trace, "s");
  const auto ends = of_phase(trace, "f");
  REQUIRE(starts.size() == 2);
  REQUIRE(ends.size() == 2);
  std::set<std::uint64_t> ids;
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(starts[i].at("id") == ends[i].at("id"));
    ids.insert(starts[i].at("id").get<std::uint64_t>());
    // Processes 1 and 3 are predicted, 2 and 4 measured. So node 1's number is node 0's plus two.
    CHECK(ends[i].at("pid").get<int>() - starts[i].at("pid").get<int>() == 2);
  }
  CHECK(ids.size() == 2);
}

TEST_CASE("messages that share a port get lanes of their own, and lanes are used again") {
  // Node 0 sends three messages: two concurrently, and the third after the first has ended.
  casync::GraphBuilder builder(3);
  for (const std::uint32_t peer_offset : {1U, 2U, 1U}) {
    casync::Task send;
    send.kind = casync::Kind::kSend;
    send.peer_offset = peer_offset;
    casync::Task recv = send;
    recv.kind = casync::Kind::kRecv;
    recv.node = peer_offset;
    const auto id = builder.add(send);
    builder.edge(id, builder.add(recv));
  }
  const auto graph = std::move(builder).build();
  const auto shared = timeline("fair", {{0, 20}, {20, 20}, {5, 30}, {30, 30}, {20, 40}, {40, 40}});
  const json trace = events(graph, {&shared});
  std::map<int, int> lane_of_task;
  for (const json& slice : of_phase(trace, "X")) {
    if (slice.at("cat") == "Send") {
      lane_of_task[slice.at("args").at("task")] = slice.at("tid").get<int>() - (2 << 20);
    }
  }
  CHECK(lane_of_task == std::map<int, int>{{0, 0}, {2, 1}, {4, 0}});
  const auto threads = names(trace, "thread_name");
  CHECK(threads.at({1, 2 << 20}) == "egress");
  CHECK(threads.at({1, (2 << 20) + 1}) == "egress 2");
}

TEST_CASE("names are escaped, so that any gradient name gives valid JSON") {
  const Timeline predicted = predicted_one_message();
  const std::string name = "a\"b\\c\n\xc3\xa9";
  const json trace = json::parse(text(one_message(), {name}, {&predicted})).at("traceEvents");
  CHECK(of_phase(trace, "X").at(0).at("args").at("gradient") == name);
}

TEST_CASE("no tasks and no timelines are a trace without slices") {
  const auto empty = casync::GraphBuilder(2).build();
  const Timeline nothing{"predicted", {}, {}};
  const json trace = json::parse(text(empty, {}, {&nothing})).at("traceEvents");
  CHECK(of_phase(trace, "X").empty());
  CHECK(names(trace, "process_name").size() == 2);
  CHECK(json::parse(text(one_message(), {"fc6.weight"}, {})).at("traceEvents").empty());
}

TEST_CASE("a trace says what it is of, where that is known") {
  const auto graph = one_message();
  const Timeline predicted = predicted_one_message();
  CHECK(subject_in(graph, predicted, {"vgg19", "plan all, ring, N = 2"}) ==
        json({{"model", "vgg19"}, {"plan", "plan all, ring, N = 2"}}));
  CHECK(subject_in(graph, predicted, {}).is_null());
}

TEST_CASE("what does not belong to the graph is refused before anything is written") {
  const auto graph = one_message();
  const Timeline predicted = predicted_one_message();
  const Timeline foreign = timeline("elsewhere", {{0, 1}});
  std::ostringstream out;
  CHECK_THROWS_WITH(write_chrome_trace(out, graph, {"fc6.weight"}, {&predicted, &foreign}),
                    Catch::Contains("'elsewhere'"));
  CHECK_THROWS_WITH(write_chrome_trace(out, graph, {}, {&predicted}),
                    Catch::Contains("0 gradient names"));
  CHECK(out.str().empty());
}

TEST_CASE("the same input gives the same bytes, whatever the order of ties") {
  // All of the thousand messages run at the same time, so only task IDs determine order and lanes.
  casync::GraphBuilder builder(2);
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    casync::Task encode;
    encode.kind = casync::Kind::kEncode;
    encode.partition = i;
    builder.add(encode);
    spans.emplace_back(0, 7);
  }
  const auto graph = std::move(builder).build();
  const Timeline ties = timeline("t", spans);
  CHECK(text(graph, {"g"}, {&ties}) == text(graph, {"g"}, {&ties}));
  const auto slices = of_phase(json::parse(text(graph, {"g"}, {&ties})).at("traceEvents"), "X");
  REQUIRE(slices.size() == 1000);
  for (int i = 0; i < 1000; ++i) REQUIRE(slices[i].at("tid") == (1 << 20) + i);
}

TEST_CASE("what a node's GPUs exchange has a lane of its own, and bytes") {
  casync::GraphBuilder builder(1);
  builder.add({.amount = 128, .kind = casync::Kind::kLocalReduce});
  const Timeline predicted = timeline("predicted", {{0, 5}});
  const json all = events(std::move(builder).build(), {&predicted});
  CHECK(names(all, "thread_name").begin()->second == "local");
  const json task = of_phase(all, "X").at(0);
  CHECK(task.at("name") == "LocalReduce fc6.weight");
  CHECK(task.at("args").at("bytes") == 128);
}

}  // namespace
}  // namespace hipress::traces
