#include "casync/schedule.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "casync/folding.hpp"
#include "casync/layers.hpp"
#include "casync/layout.hpp"
#include "tests/casync/fixtures.hpp"

namespace hipress::casync {
namespace {

using Catch::Matchers::Contains;

/// A model whose layers have two gradients each. The last layer is ready first. A step takes 3 s.
models::Model layered(int layers) {
  models::Model model;
  model.forward_s = 1;
  for (int layer = layers; layer-- > 0;) {
    for (const char* tensor : {".bias", ".weight"}) {
      model.gradients.push_back({.name = fmt::format("blocks.{}{}", layer, tensor),
                                 .elements = 256,
                                 .ready_s = 2.0 * (layers - layer) / layers});
    }
  }
  return model;
}

Plan planned(const std::string& schedule, const models::Model& model,
             const std::string& topology = "ring", std::uint32_t nodes = 2) {
  Plan plan = plan_of(topology, nodes, kRaw, static_cast<int>(nodes), model.gradients.size());
  plan.schedule = Schedule::parse(schedule);
  return plan;
}

std::map<Kind, int> count(const TaskGraph& graph) {
  std::map<Kind, int> counts;
  for (TaskId id = 0; id < graph.tasks(); ++id) ++counts[graph[id].kind];
  return counts;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a schedule's text is read, and written with what is not the default") {
  CHECK(Schedule().text() == "ddp");
  CHECK(Schedule::parse("ddp") == Schedule());
  CHECK(Schedule::parse("ddp()") == Schedule());
  CHECK(Schedule::parse(" local( steps=100 , fragments=4,pattern=strided, overlap=0) ").text() ==
        "local(steps=100, fragments=4)");
  CHECK(Schedule::parse("local").text() == "local(steps=100)");
  const std::string all = "local(steps=100, fragments=8, every=12, pattern=sequential, overlap=1)";
  CHECK(Schedule::parse(all).text() == all);
}

TEST_CASE("what is no schedule is refused with what there is") {
  const auto why = [](const char* text) { return refusal([&] { Schedule::parse(text); }); };
  CHECK_THAT(why("fast"), Contains("unknown schedule 'fast'; known are ddp, local, fsdp, hsdp"));
  CHECK_THAT(why(""), Contains("unknown schedule ''; known are"));
  CHECK_THAT(why("fsdpp"), Contains("unknown schedule 'fsdpp'; did you mean 'fsdp'? known are"));
  CHECK_THAT(why("ZeRO-3"), Contains("unknown schedule 'ZeRO-3'; did you mean 'fsdp'? known are"));
  CHECK_THAT(why("shard_grad_op"), Contains("did you mean 'fsdp(reshard=false)'?"));
  CHECK_THAT(why("diloco"), Contains("did you mean 'local(steps=100)'?"));
  CHECK_THAT(why("fdsp"), Contains("unknown schedule 'fdsp'; did you mean 'fsdp'? known are"));
  CHECK_THAT(why("local(setps=10)"),
             Contains("does not take 'setps=10'; did you mean 'steps'? write local("));
  CHECK_THAT(why("local(steps=0)"), Contains("steps must be a whole number from 1"));
  CHECK_THAT(why("local(steps=-3)"), Contains("got '-3'"));
  CHECK_THAT(why("local(steps=1.5)"), Contains("got '1.5'"));
  CHECK_THAT(why("local(steps=9999999999999999999999)"), Contains("whole number"));
  CHECK_THAT(why("local(steps=10, fragments=0)"), Contains("fragments must be"));
  CHECK_THAT(why("local(steps=10, overlap=10)"), Contains("give an overlap of at most 9"));
  CHECK_THAT(why("local(steps=10, pattern=zigzag)"), Contains("strided or sequential"));
  CHECK_THAT(why("local(steps=10, speed=3)"), Contains("does not take 'speed=3'"));
  CHECK_THAT(why("local(steps=10, steps=12)"), Contains("given twice"));
  CHECK_THAT(why("local(steps=10"), Contains("not closed"));
  CHECK_THAT(why("local(steps=10,)"), Contains("last comma"));
  CHECK_THAT(why("local(10)"), Contains("does not take '10'"));
  CHECK_THAT(why("ddp(steps=3)"), Contains("does not take"));
  CHECK_THAT(why("local(steps=1000000, fragments=1000000, every=2)"), Contains("fewer fragments"));
}

TEST_CASE("a text may stand for a set of schedules") {
  const auto texts = [](const char* text) {
    std::vector<std::string> found;
    for (const Schedule& schedule : Schedule::parse_set(text)) found.push_back(schedule.text());
    return found;
  };
  CHECK(texts("ddp") == std::vector<std::string>{"ddp"});
  CHECK(texts("local(steps=50|100)") ==
        std::vector<std::string>{"local(steps=50)", "local(steps=100)"});
  CHECK(texts("local(steps=50|100, fragments = 2 | 4 ,pattern=strided|sequential)") ==
        std::vector<std::string>{
            "local(steps=50, fragments=2)", "local(steps=50, fragments=2, pattern=sequential)",
            "local(steps=50, fragments=4)", "local(steps=50, fragments=4, pattern=sequential)",
            "local(steps=100, fragments=2)", "local(steps=100, fragments=2, pattern=sequential)",
            "local(steps=100, fragments=4)", "local(steps=100, fragments=4, pattern=sequential)"});
  // Combinations whose overlap is as long as the period are left out.
  CHECK(texts("local(steps=1|2, overlap=0|1)") ==
        std::vector<std::string>{"local(steps=1)", "local(steps=2)", "local(steps=2, overlap=1)"});
  const auto why = [](const char* text) { return refusal([&] { Schedule::parse_set(text); }); };
  CHECK_THAT(why("local(steps=1, overlap=1|2)"), Contains("give an overlap of at most 0"));
  CHECK_THAT(why("local(steps=50|0)"), Contains("got '0'"));
  CHECK_THAT(why("local(steps=50|)"), Contains("got ''"));
  CHECK_THAT(why("local(steps=|)"), Contains("got ''"));
  CHECK_THAT(why("ddp|local"), Contains("unknown schedule"));
  CHECK_THAT(why("local(pattern=strided|zigzag)"), Contains("got 'zigzag'"));
  std::string many = "local(steps=1";
  for (int i = 2; i < 1002; ++i) many += fmt::format("|{}", i);
  CHECK_THAT(why((many + ")").c_str()), Contains("more than 1000 schedules"));
}

TEST_CASE("layers are named by the model, else by its gradients' names") {
  models::Model model = model_of({1, 1, 1, 1, 1, 1});
  const char* names[] = {"head.weight",         "model.layers.1.mlp.weight",
                         "model.layers.1.bias", "model.layers.0.mlp.weight",
                         "embedding.weight",    "parameters.12"};
  for (std::size_t g = 0; g < 6; ++g) {
    model.gradients[g].name = names[g];
    model.gradients[g].ready_s = static_cast<double>(g);
  }
  const Layers layers = layers_of(model);
  CHECK(layers.names == std::vector<std::string>{"parameters.12", "embedding.weight",
                                                 "model.layers.0", "model.layers.1",
                                                 "head.weight"});
  CHECK(layers.of_gradient == std::vector<std::uint32_t>{4, 3, 3, 2, 1, 0});
  for (models::Gradient& gradient : model.gradients) gradient.layer = "all";
  CHECK(layers_of(model).names == std::vector<std::string>{"all"});
}

TEST_CASE("fragments take turns, strided or as neighbours") {
  const models::Model model = layered(6);
  const auto table = [&](const char* text) { return Schedule::parse(text).timetable(model); };
  // Gradients are in the order of backward, so layer 5 comes first.
  CHECK(table("local(steps=10, fragments=3)").part_of ==
        std::vector<std::uint32_t>{2, 2, 1, 1, 0, 0, 2, 2, 1, 1, 0, 0});
  CHECK(table("local(steps=10, fragments=3, pattern=sequential)").part_of ==
        std::vector<std::uint32_t>{2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0});
  const Timetable turns = table("local(steps=10, fragments=3, overlap=2)");
  CHECK(turns.steps == 10);  // a fragment every 3 steps
  REQUIRE(turns.synchronisations.size() == 3);
  for (std::uint32_t part = 0; part < 3; ++part) {
    CHECK(turns.synchronisations[part].part == part);
    CHECK(turns.synchronisations[part].step == 3 * part + 2);
    CHECK(turns.synchronisations[part].awaited == 3 * part + 5);
  }
  CHECK(table("local(steps=10, fragments=3, every=4)").steps == 12);
  CHECK(table("local(steps=2, fragments=6)").steps == 6);
  CHECK_THAT(refusal([&] { table("local(steps=10, fragments=7)"); }),
             Contains("fragments=7 of a model of 6 layers: give at most that many"));
}

TEST_CASE("a schedule of one step and one fragment is ddp") {
  const models::Model model = layered(4);
  for (const char* topology : {"ps", "ring", "allreduce"}) {
    for (const int iterations : {1, 2, 5}) {
      const TaskGraph ddp = expand_back_to_back(model, planned("ddp", model, topology), iterations);
      const TaskGraph local =
          expand_back_to_back(model, planned("local(steps=1)", model, topology), iterations);
      CHECK(ddp.edges.columns == local.edges.columns);
      CHECK(ddp.edges.starts == local.edges.starts);
      REQUIRE(ddp.tasks() == local.tasks());
      for (TaskId id = 0; id < ddp.tasks(); ++id) {
        CHECK(ddp[id].amount == local[id].amount);
        CHECK(ddp[id].kind == local[id].kind);
      }
    }
  }
}

TEST_CASE("steps without a synchronisation are one task, however many there are") {
  const models::Model model = layered(12);
  const TaskGraph short_one =
      expand_back_to_back(model, planned("local(steps=20, fragments=4, every=5)", model), 3);
  const TaskGraph long_one =
      expand_back_to_back(model, planned("local(steps=2000, fragments=4, every=500)", model), 3);
  check(short_one);
  check(long_one);
  CHECK(short_one.tasks() == long_one.tasks());
  // In each of 3 periods, each of the 24 gradients is sent once, in 2(N-1) · K = 2 · 2 messages.
  auto counts = count(short_one);
  CHECK(counts[Kind::kSend] == 3 * 24 * 2 * 2);
  for (const TaskGraph* graph : {&short_one, &long_one}) {
    std::int64_t computed = 0;
    for (TaskId id = 0; id < graph->tasks(); ++id) {
      if ((*graph)[id].node == 0 && is_computation((*graph)[id])) computed += (*graph)[id].amount;
    }
    const std::int64_t steps = graph == &short_one ? 60 : 6000;
    CHECK(computed == steps * from_seconds(3).count());
  }
}

TEST_CASE("a period that times cannot hold is refused") {
  models::Model model = layered(4);
  model.forward_s = 1e6;
  CHECK_THAT(
      refusal([&] { expand_back_to_back(model, planned("local(steps=1000000)", model), 2); }),
      Contains("longer than times can hold; give fewer"));
}

/// Tasks of this kind and gradient on node 0.
std::vector<TaskId> tasks_of(const TaskGraph& graph, Kind kind, std::uint32_t gradient) {
  std::vector<TaskId> found;
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const Task& task = graph[id];
    if (task.kind == kind && task.gradient == gradient && task.node == 0) found.push_back(id);
  }
  return found;
}

/// True if a path leads from one task to the other.
bool leads(const TaskGraph& graph, TaskId from, TaskId to) {
  std::vector<bool> reached(graph.tasks(), false);
  reached[from] = true;
  for (TaskId id = from; id < to; ++id) {
    if (!reached[id]) continue;
    for (const TaskId next : successors(graph, id)) reached[next] = true;
  }
  return reached[to];
}

TEST_CASE("a mean is awaited by the forward pass that the overlap says, and by none before it") {
  const models::Model model = layered(2);
  for (const int overlap : {0, 1, 2}) {
    // Layer 1 (gradients 0 and 1) is synchronised after step 3, layer 0 after step 1.
    const TaskGraph graph = expand_back_to_back(
        model, planned(fmt::format("local(steps=5, fragments=2, overlap={})", overlap), model), 2);
    check(graph);
    std::vector<TaskId> means = tasks_of(graph, Kind::kRecv, 0);
    REQUIRE(means.size() == 4);  // two per period
    const std::vector<TaskId> awaiting = tasks_of(graph, Kind::kForward, 0);
    REQUIRE(awaiting.size() >= 2);
    std::int64_t steps_before = 0;  // computation before the forward pass that waits
    const TaskId last_of_first = means[1];
    TaskId waits = kNoIndex;
    for (TaskId id = 0; id < graph.tasks(); ++id) {
      const Task& task = graph[id];
      if (task.node != 0 || !is_computation(task)) continue;
      if (waits == kNoIndex && id > last_of_first && leads(graph, last_of_first, id)) waits = id;
      if (waits == kNoIndex) steps_before += task.amount;
    }
    REQUIRE(waits != kNoIndex);
    CHECK(graph[waits].kind == Kind::kForward);
    CHECK(graph[waits].gradient == 0);
    // Before the forward pass that waits come steps 0 to 3, the overlapped steps, and the forward
    // pass of layer 0.
    CHECK(steps_before == from_seconds(3 * (4 + overlap) + 0.5).count());
  }
}

TEST_CASE("bulk groups never join what is synchronised in different steps") {
  const models::Model model = layered(4);
  Plan plan = planned("local(steps=10, fragments=2)", model);
  plan.bulk.threshold_bytes = 1 << 20;
  const Layout layout = make_layout(model, plan);
  CHECK(layout.order.size() == 2);
  for (const std::uint32_t unit : layout.order) {
    for (const std::uint32_t member : layout.units[unit].members) {
      CHECK(layout.timetable.part_of[member] == layout.part_of(unit));
    }
  }
  plan.bulk_groups = {{0, 2}};
  CHECK_THAT(refusal([&] { make_layout(model, plan); }), Contains("in different steps"));
  check(expand_back_to_back(model, planned("local(steps=10, fragments=2)", model), 3));
}

TEST_CASE("a sharded schedule is expanded layer by layer") {
  const models::Model model = layered(4);
  const TaskGraph graph = expand(model, planned("fsdp", model, "ring", 4));
  check(graph);
  // Each of 4 nodes runs the optimizer, and per layer two passes and three collectives.
  std::map<Kind, int> counts = count(graph);
  CHECK(counts[Kind::kForward] == 4 * (1 + 4));
  CHECK(counts[Kind::kBackward] == 4 * 4);
  CHECK(counts[Kind::kAllGather] == 4 * 2 * 4);
  CHECK(counts[Kind::kReduceScatter] == 4 * 4);
  CHECK(make_layout(model, planned("fsdp", model)).units.back().name == "blocks.0");
  CHECK_THAT(refusal([&] { expand_to_run(model, planned("fsdp", model)); }),
             Contains("a library's collectives are simulated, not run; give `shards_by` ring"));
  Plan plan = planned("hsdp(shard=2)", model, "ring", 4);
  plan.decisions[0].algorithm = 0;
  CHECK_THAT(refusal([&] { expand(model, plan); }),
             Contains("of one layer, and compressed differently"));
  plan.decisions[1].algorithm = 0;
  counts = count(expand(model, plan));
  CHECK(counts[Kind::kAllToAll] == 4);                 // of the compressed layer, one per node
  CHECK(counts[Kind::kReduceScatter] == 4 * (3 + 4));  // one per other layer; between groups, one
                                                       // per layer
}

TEST_CASE("a layer with gradients of two types is sent as one") {
  models::Model model = layered(4);
  REQUIRE(model.gradients.size() >= 2);
  Plan plan = planned("fsdp", model, "ring", 4);
  plan.algorithms = {{.name = "cast", .encoded_bytes = [](std::int64_t n) { return 2 * n; }},
                     {.name = "bits", .encoded_bytes = [](std::int64_t n) { return n; }}};
  plan.algorithms.front().half_precision = true;
  const Timetable table = plan.schedule.timetable(model);
  std::uint32_t other = 1;  // the other gradient of gradient 0's layer
  while (table.part_of[other] != table.part_of[0]) ++other;
  model.gradients[0].dtype = models::Dtype::kBfloat16;
  const auto sent_as = [&](std::int8_t first, std::int8_t second, std::string_view by) {
    plan.decisions[0].algorithm = first;
    plan.decisions[other].algorithm = second;
    plan.shards_by = by;
    const Layout layout = make_layout(model, plan);
    return layout.units[layout.unit_of[0]].algorithm;
  };
  CHECK(sent_as(0, kRaw, "library") == kRaw);  // each gradient as it is stored
  CHECK(sent_as(kRaw, kRaw, "library") == kRaw);
  CHECK(sent_as(0, 0, "library") == 0);  // both in half precision
  CHECK(sent_as(kRaw, 0, "library") == 0);
  CHECK(sent_as(0, kRaw, "ring") == kRaw);  // raw, as in a plan without compression
  CHECK(sent_as(0, 0, "ring") == 0);
  CHECK(sent_as(1, 1, "ring") == 1);
  for (const std::string_view by : {"library", "ring"}) {
    CHECK_THAT(refusal([&] { sent_as(0, 1, by); }),
               Contains("of one layer, and compressed differently"));
  }
}

TEST_CASE("shards in messages are gathered into units of their own") {
  const models::Model model = layered(4);
  Plan plan = planned("fsdp", model, "ps", 4);
  plan.shards_by = "ring";
  const Layout layout = make_layout(model, plan);
  REQUIRE(layout.parameters.size() == 4);
  for (const auto& [forward, backward] : layout.parameters) {
    CHECK(layout.units[forward].topology->name == "ring_gather");
    CHECK(layout.units[backward].topology->name == "ring_gather");
    CHECK(layout.units[backward].partitions == 4);
  }
  CHECK(layout.units[layout.order[0]].topology->name == "ring_reduce_scatter");
  const TaskGraph graph = expand_to_run(model, plan);
  check(graph);
  CHECK(graph.groups.empty());
  std::map<Kind, int> counts = count(graph);
  CHECK(counts[Kind::kBackward] == 4 * 4);
  CHECK(counts[Kind::kSend] == 4 * 3 * (4 * 3));  // per layer, three operations with 3 messages per
                                                  // shard
  plan.schedule = Schedule::parse("fsdp(reshard=false)");
  CHECK(make_layout(model, plan).parameters[0].backward == kNoIndex);
  CHECK(count(expand_to_run(model, plan))[Kind::kSend] == 4 * 2 * (4 * 3));

  // With two pairs of nodes, a gather sends each pair's 2 shards once. A reduction sends one
  // message per partition (of 4) in each pair, then one between the pairs, and one back.
  plan.schedule = Schedule::parse("hsdp(shard=2)");
  const Layout pairs = make_layout(model, plan);
  CHECK(pairs.units[pairs.parameters[0].forward].partitions == 2);
  CHECK(pairs.units[pairs.order[0]].partitions == 4);
  CHECK(count(expand_to_run(model, plan))[Kind::kSend] == 4 * (2 * 4 + 4 * 2 + 4 + 4));
  plan.schedule = Schedule::parse("fsdp");
  plan.shards_by = "pigeon";
  CHECK_THAT(refusal([&] { make_layout(model, plan); }),
             Contains("shards travel by library, ring, direct, not by 'pigeon'"));
  plan.shards_by = "ring";
  CHECK(foldable(model, plan).kind == Foldability::kImpossible);
  models::Model several = model;
  several.micro_steps = 2;
  CHECK_THAT(refusal([&] { expand_to_run(several, plan); }), Contains("set micro_steps to 1"));
}

TEST_CASE("plans of any kind follow a schedule") {
  const models::Model model = layered(4);
  for (const char* topology : {"ps", "ring", "allreduce"}) {
    for (const int gpus : {1, 4}) {
      for (const bool pipelining : {true, false}) {
        Plan plan = planned("local(steps=6, fragments=2, overlap=2)", model, topology, 3);
        plan.gpus_per_node = static_cast<std::uint32_t>(gpus);
        plan.pipelining = pipelining;
        plan.batch.threshold_bytes = pipelining ? 1 << 20 : 0;
        check(expand_back_to_back(model, plan, 3));
        check(expand(model, plan));
      }
    }
  }
}

/// A timetable that synchronises all gradients in every second step.
Timetable odd_steps(const ScheduleValues&, const models::Model& model) {
  return {.steps = 2,
          .part_of = std::vector<std::uint32_t>(model.gradients.size(), 0),
          .synchronisations = {{.part = 0, .step = 1, .awaited = 2}}};
}
Timetable too_late(const ScheduleValues&, const models::Model& model) {
  return {.steps = 2,
          .part_of = std::vector<std::uint32_t>(model.gradients.size(), 0),
          .synchronisations = {{.part = 0, .step = 1, .awaited = 4}}};
}

TEST_CASE("somebody else's schedule is one row") {
  const models::Model model = layered(2);
  {
    const ScheduleRow row{.name = "odd_steps",
                          .help = "the mean in every second step",
                          .parameters = {},
                          .check = nullptr,
                          .timetable = odd_steps,
                          .gives_up = nullptr};
    const ScheduleRegistration registration(row);
    CHECK(schedule_names() == "ddp, local, fsdp, hsdp, odd_steps");
    CHECK_THROWS_AS(ScheduleRegistration(row), std::invalid_argument);
    const TaskGraph graph = expand_back_to_back(model, planned("odd_steps", model), 2);
    check(graph);
    CHECK(count(graph)[Kind::kSteps] == 0);  // no step is plain: one begins, one awaits
    CHECK(count(graph)[Kind::kSend] == 2 * 4 * 2 * 2);
  }
  CHECK(schedule_names() == "ddp, local, fsdp, hsdp");
  const ScheduleRow wrong{.name = "wrong",
                          .help = "",
                          .parameters = {},
                          .check = nullptr,
                          .timetable = too_late,
                          .gives_up = nullptr};
  const ScheduleRegistration registration(wrong);
  CHECK_THROWS_AS(Schedule::parse("wrong").timetable(model), std::logic_error);
}

}  // namespace
}  // namespace hipress::casync
