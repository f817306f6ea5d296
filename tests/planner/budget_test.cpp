// Tests that budgets, memory limits and signals end long computations.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <string>
#include <vector>

#include "planner/baselines/baselines.hpp"
#include "planner/search/search.hpp"
#include "planner/search/timeline_search.hpp"
#include "plans/plan_file.hpp"
#include "tests/planner/tool_run.hpp"

namespace hipress::planner {
namespace {

using Catch::Contains;

/// Problem of three large gradients.
struct Large {
  explicit Large(std::uint32_t nodes) {
    model.name = "large";
    for (const char* name : {"a", "b", "c"}) {
      model.gradients.push_back({.name = name, .elements = std::int64_t{1} << 36});
    }
    machines.cluster = costs::cluster_from_profile(profile, nodes);
    problem.nodes = nodes;
  }

  models::Model model;
  costs::Profile profile = costs::read_profile("sosp21");
  Machines machines = {profile, {}, sim::Network::kPort};
  Problem problem = {.model = model, .algorithms = {"onebit"}, .machines = &machines};
};

TEST_CASE("a simulation that would take longer than what is left is not begun") {
  SimulationBudget budget(1, nullptr);
  CHECK(budget.objection(1000, SimulationKind::kFair).empty());
  CHECK_THAT(budget.objection(1e9, SimulationKind::kFair), Contains("and the budget leaves"));
  // If 2e5 tasks took 2 s, a task takes 10 us, and 1e6 tasks take 10 s.
  CHECK(budget.objection(1e5, SimulationKind::kPort).empty());
  budget.note(2e5, SimulationKind::kPort, 2);
  CHECK_THAT(budget.objection(1e6, SimulationKind::kPort), Contains("about 10s"));
  // The other engine's estimate is unchanged.
  CHECK(budget.objection(1e5, SimulationKind::kFair).empty());
  CHECK_FALSE(budget.over());
  CHECK(SimulationBudget(0, nullptr).over());
}

TEST_CASE("a budget lasts longer where the process has not had its time of a core") {
  constexpr double kShort_s = 0.02;
  const SimulationBudget alone(kShort_s, nullptr), busy(kShort_s, nullptr, 1000);
  const SimulationBudget over(0, nullptr, 1000), shorter(kShort_s, nullptr, kShort_s / 2);
  ::usleep(2 * static_cast<int>(kShort_s * 1e6));  // sleeping uses no CPU time
  CHECK(alone.over());
  CHECK(shorter.over());
  CHECK(over.over());
  CHECK_FALSE(busy.over());
  // When the process has used the CPU time, the budget ends.
  const std::clock_t begin = std::clock();
  while (static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < kShort_s) continue;
  CHECK(busy.over());
}

TEST_CASE("what is reserved is left until it is given back") {
  SimulationBudget budget(1000, nullptr);
  CHECK(budget.objection(1e7, SimulationKind::kFair).empty());  // takes some seconds
  budget.reserve(999);
  CHECK_FALSE(budget.objection(1e7, SimulationKind::kFair).empty());
  CHECK_FALSE(budget.over());
  budget.reserve(2000);
  CHECK(budget.over());
  budget.reserve(0);
  CHECK(budget.objection(1e7, SimulationKind::kFair).empty());
  CHECK_FALSE(budget.over());
}

TEST_CASE("an interrupt leaves a second, however long the budget is") {
  std::atomic<bool> interrupted = false;
  const SimulationBudget budget(1e9, &interrupted);
  CHECK(budget.objection(1e8, SimulationKind::kFair).empty());  // takes 80 s
  interrupted = true;
  CHECK(budget.objection(1e8, SimulationKind::kFair) == "interrupted");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!budget.over() && std::chrono::steady_clock::now() < deadline) ::usleep(10'000);
  CHECK(budget.over());
}

TEST_CASE("baselines of a million nodes are left out where the budget has no time for them",
          "[slow]") {
  Large large(1 << 20);
  large.machines.budget = std::make_shared<SimulationBudget>(0.5, nullptr);
  const std::vector<Baseline> baselines = simulate_baselines(large.problem, large.machines);
  REQUIRE(baselines.size() ==
          std::size_t(std::ranges::count_if(all_baselines(), [](const BaselineRow& row) {
            return row.is_for(JobKind::kAveraging);
          })));
  for (const Baseline& baseline : baselines) {
    CAPTURE(baseline.name);
    // An all-reduce has few tasks, so it is simulated.
    if (baseline.name.starts_with("ddp")) continue;
    CHECK_FALSE(baseline.iteration_s);
    CHECK_THAT(baseline.diagnostic, Contains("not simulated"));
    CHECK(baseline.plan.decisions.size() == 3);
  }
}

TEST_CASE("a search among a million nodes keeps its budget, and returns a plan", "[slow]") {
  Large large(1 << 20);
  large.machines.budget = std::make_shared<SimulationBudget>(0.5, nullptr);
  large.problem.limits.budget_s = 0.2;
  const auto start = std::chrono::steady_clock::now();
  const SearchResult found = search_timeline(large.problem);
  CHECK(found.plan.decisions.size() == 3);
  // One simulation would take minutes. The limit allows for busy machines and instrumented builds.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

TEST_CASE("a simulation that runs is stopped when the budget is over") {
  Large large(256);
  large.machines.network = sim::Network::kFair;
  const casync::Plan plan =
      plans::resolve_plan("none", {.model = large.model, .topology = "ps", .nodes = 256}).plan;
  sim::Scenario scenario = affordable_scenario(large.model, plan, large.machines).scenario;
  const casync::TaskGraph graph = sim::expand(scenario, casync::Folding::kFolded);
  int questions = 0;
  scenario.stop = [&] { return ++questions == 2; };
  CHECK_THROWS_AS(sim::simulate(scenario, graph), sim::Stopped);
  scenario.stop = [] { return false; };
  CHECK_NOTHROW(sim::simulate(scenario, graph));
}

TEST_CASE("a graph that does not fit in memory is folded, or not simulated") {
  Large large(64);
  const casync::Plan plan =
      plans::resolve_plan("all", {.model = large.model, .topology = "ps", .nodes = 64}).plan;
  const AffordableTime alone = affordable_iteration(large.model, plan, large.machines);
  REQUIRE(alone.iteration_s);
  // Messages (64·63·3) and codecs make about 90000 tasks of 84 bytes. Those of a node fit in 1 MB.
  large.machines.memory_bytes = 1e6;
  const AffordableTime folded = affordable_iteration(large.model, plan, large.machines);
  CHECK(folded.iteration_s == alone.iteration_s);
  large.machines.memory_bytes = 1e3;
  const AffordableTime none = affordable_iteration(large.model, plan, large.machines);
  CHECK_FALSE(none.iteration_s);
  CHECK_THAT(none.diagnostic, Contains("do not fit in memory"));
}

TEST_CASE("costs whose sums 64 bits do not hold are refused, not wrapped around") {
  Large large(1 << 10);
  for (models::Gradient& gradient : large.model.gradients) {
    gradient.elements = std::int64_t{1} << 46;
  }
  // A message of 2^48 bytes takes 9.4e5 s at 300 MB/s, which one task may. A server receives 1023
  // of them.
  large.machines.cluster.link.bandwidth = large.machines.cluster.link.bandwidth_both_ways = 3e8;
  const casync::Plan one = {.topology = "ps",
                            .nodes = 1 << 10,
                            .algorithms = {},
                            .decisions = {{casync::kRaw, 1}, {casync::kRaw, 1}, {casync::kRaw, 1}}};
  CHECK_THROWS_AS(affordable_iteration(large.model, one, large.machines), io::InputError);
  large.problem.limits.evaluations = 20;
  CHECK_THROWS_AS(search_timeline(large.problem), io::InputError);
}

TEST_CASE("bytes that 64 bits do not hold are refused, not wrapped around") {
  // The server sends 2^50 bytes to each of 8299 other nodes: more than 2^63 in total.
  Large large(8300);
  large.model.gradients = {{.name = "a", .elements = models::kMaxElements}};
  large.profile.merge = {};  // merges are free
  large.machines.cluster.link.bandwidth = large.machines.cluster.link.bandwidth_both_ways = 1e15;
  const casync::Plan plan = {
      .topology = "ps", .nodes = 8300, .algorithms = {}, .decisions = {{casync::kRaw, 1}}};
  CHECK_THROWS_WITH(affordable_iteration(large.model, plan, large.machines),
                    Contains("more than 2^63 bytes"));
}

/// A tool that runs in a folder. Its stderr is read while it runs.
class Running {
 public:
  Running(const Workplace& folder, std::vector<const char*> arguments) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
      const int nothing = ::open("/dev/null", O_WRONLY);
      ::dup2(nothing, STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::alarm(120);
      const std::string tool = std::string(HIPRESS_TOOL_DIR "/") + arguments[0];
      arguments.push_back(nullptr);
      if (::chdir(folder.path().c_str()) == 0) {
        ::execv(tool.c_str(), const_cast<char* const*>(arguments.data()));
      }
      ::_exit(127);
    }
    ::close(ends[1]);
    err_ = ends[0];
  }
  ~Running() {
    ::close(err_);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Reads until `text` appears; if it is empty, reads to the end.
  void await(const std::string& text) {
    char bytes[512];
    while (text.empty() || said.find(text) == std::string::npos) {
      const ssize_t count = ::read(err_, bytes, sizeof bytes);
      if (count <= 0) break;
      said.append(bytes, static_cast<std::size_t>(count));
    }
    CHECK_THAT(said, Contains(text));
  }
  void send(int number) { ::kill(pid_, number); }
  /// Waits for the end. Returns the exit status, or minus the signal that ended the tool.
  int end() {
    await("");
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  std::string said;  ///< text that was read from stderr

 private:
  pid_t pid_ = -1;
  int err_ = -1;
};

TEST_CASE("SIGINT, SIGTERM and SIGHUP during a search give the best plan so far") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(number);
    const Workplace folder;
    Running plan(folder, {"hipress-plan", "--input", "vgg19", "--nnodes", "4", "--profile",
                          "sosp21", "--budget", "100000", "--output", "plan.yaml"});
    plan.await("searching; an interrupt ends the search with the best plan so far");
    plan.send(number);
    CHECK(plan.end() == 0);
    CHECK_THAT(plan.said, Contains("interrupted: this is the best plan so far"));
    CHECK(folder.files() == 1);
    CHECK_THAT(folder.read("plan.yaml"), Contains("predicted_iteration: "));
  }
}

TEST_CASE("SIGTERM ends a sweep at once, and leaves no half file") {
  const Workplace folder;
  folder.write("sweep.yaml",
               "model: bert_large\nplan: [none, all]\nnodes: [20, 22, 24, 26, 28, 30]\n"
               "latency: {from: 1us, to: 999us, step: 1us}\n");
  folder.write("out.csv", "old\n");
  Running sweep(folder, {"hipress-sim", "sweep", "sweep.yaml", "--output", "out.csv"});
  sweep.await("simulations, about");
  sweep.send(SIGTERM);
  CHECK(sweep.end() == -SIGTERM);
  // A third file is the cache, if anything is in it.
  CHECK((folder.files() == 2 || folder.files() == 3));
  CHECK(folder.read("out.csv") == "old\n");
}

TEST_CASE("a name that no text plan can hold is refused before the search", "[tool]") {
  const Workplace folder;
  folder.write("m.yaml", "name: m\ngradients:\n- {name: \"a,b\", elements: 64}\n");
  const ToolRun refused = folder.run("hipress-plan --input m.yaml --profile sosp21 --budget 1000");
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("'a,b'") && Contains("write the plan to a .yaml file"));
  CHECK(folder.run("hipress-plan --input m.yaml --evaluations 5 --output p.yaml").status == 0);
  CHECK(folder.run("hipress-sim --input m.yaml --nnodes 16 --plan p.yaml").status == 0);
}

TEST_CASE("whatever a file or a name holds, no control character reaches the terminal", "[tool]") {
  const Workplace folder;
  folder.write("m.yaml", "name: m\ngradients:\n- {name: \"a\\e[31m\\0b\", elements: 64}\n");
  folder.write("good.txt", "a,64\n");
  for (const std::string command :
       {"hipress-plan --input m.yaml", "hipress-sim --input m.yaml --plan all",
        "hipress-plan --input $'\\e[31m.txt'",
        "hipress-plan --input good.txt --topology $'\\e[31m'",
        "hipress-plan --input good.txt --algorithm $'\\e[31m'",
        "hipress-sim --input good.txt --plan $'x\\e[31m'",
        "hipress-sim --input good.txt --plan all --network $'\\e[31m'",
        "hipress-sim --input good.txt --plan all --jitter $'\\e[31m'",
        "hipress-sim --input good.txt --plan all --fold $'\\e[31m'"}) {
    CAPTURE(command);
    folder.write("run.sh", command + "\n");
    const ToolRun done = folder.run("bash run.sh");
    CHECK(done.status == 2);
    CHECK((done.out + done.err).find('\x1b') == std::string::npos);
    CHECK_THAT(done.err, Contains("\\x1b"));
  }
}

}  // namespace
}  // namespace hipress::planner
