#include "tools/frame.hpp"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "io/descriptors.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/interrupts.hpp"
#include "io/version.hpp"
#include "tests/io/child.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tools/validators.hpp"

using namespace hipress::io;
using namespace hipress::tools;
using hipress::tests::Child;
using hipress::tests::TemporaryFolder;

namespace {

/// Captures the text that a stream receives during the object's life.
class Capture {
 public:
  explicit Capture(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  ~Capture() { stream_.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::ostream& stream_;
  std::streambuf* before_;
};

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs the tool `hipress-test --nodes N --json --steady[=PERIODS]`, whose work is `run`.
Outcome run(std::vector<std::string> arguments, const std::function<int()>& work) {
  arguments.insert(arguments.begin(), "hipress-test");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const ToolInfo info{"hipress-test", "Tests the frame.", "hipress-test --nodes 4"};
  int nodes = 1, steady = 0;
  bool json = false;
  const Capture out(std::cout), err(std::cerr);
  const int status = run_tool(
      static_cast<int>(argv.size()), argv.data(), info,
      [&](CLI::App& app) {
        app.add_option("--nodes", nodes, "Number of nodes");
        app.add_flag("-j,--json", json, "JSON");
        app.add_flag("--steady{8}", steady, "Periods");
      },
      work);
  return {status, out.text(), err.text()};
}

int succeed() { return 0; }

template <typename Error>
Outcome fail_with(const Error& error) {
  return run({}, [&]() -> int { throw error; });
}

}  // namespace

TEST_CASE("a tool's exit status says what happened") {
  CHECK(run({"--nodes", "4"}, succeed).status == 0);
  CHECK(run({}, [] { return 3; }).status == 3);

  SECTION("a wrong request is 2") {
    const Outcome outcome =
        fail_with(InputError("plan.txt", 3, "K must be a positive integer, got '0'"));
    CHECK(outcome.status == 2);
    CHECK(outcome.err == "hipress-test: plan.txt:3: K must be a positive integer, got '0'\n");
    CHECK(outcome.out.empty());
  }
  SECTION("so is what a library refuses") {
    CHECK(fail_with(std::invalid_argument("unknown topology 'star'")).status == 2);
  }
  SECTION("a failed run is 1") {
    const Outcome outcome = fail_with(RunError("rank 2 died"));
    CHECK(outcome.status == 1);
    CHECK(outcome.err == "hipress-test: rank 2 died\n");
  }
  SECTION("so is any other exception") {
    CHECK(fail_with(std::runtime_error("x")).status == 1);
    CHECK(fail_with(std::bad_alloc()).status == 1);
  }
  SECTION("a requirement that is not met is 3") {
    CHECK(fail_with(Unmet("the search did not converge")).status == 3);
  }
}

TEST_CASE("a wrong command line is 2, names the culprit and points to the help") {
  const std::vector<std::vector<std::string>> wrong = {
      {"--colour"}, {"--nodes"}, {"--nodes", "many"}, {"stray"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = run(arguments, succeed);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::StartsWith("hipress-test: ") && Catch::Contains("--help"));
  }
  CHECK_THAT(run({"--colour"}, succeed).err, Catch::Contains("--colour"));
  CHECK_THAT(run({"--nodes", "many"}, succeed).err, Catch::Contains("many"));
  const Outcome endless = run({"--" + std::string(100'000, 'x')}, succeed);
  CHECK(endless.err.size() < 1200);
  CHECK_THAT(endless.err, Catch::Contains("unknown option '--xxx") && Catch::Contains("--help"));
}

TEST_CASE("an unknown option is proposed a known one, whatever else is wrong") {
  CHECK_THAT(run({"--ndoes", "4"}, succeed).err,
             Catch::Contains("unknown option '--ndoes'; did you mean '--nodes'?"));
  CHECK_THAT(run({"--Nodes=4"}, succeed).err, Catch::Contains("did you mean '--nodes'?"));
  CHECK_THAT(run({"-nodes=4"}, succeed).err, Catch::Contains("did you mean '--nodes'?"));
  const Outcome nonsense = run({"--xyzzyxyzzy"}, succeed);
  CHECK_THAT(nonsense.err, Catch::Contains("unknown option '--xyzzyxyzzy' (see"));
  CHECK_THAT(run({"stray"}, succeed).err, Catch::Contains("'stray' was not expected (see"));
}

TEST_CASE("a tool that needs arguments prints its usage without any") {
  const ToolInfo info = {.name = "hipress-test",
                         .purpose = "Tests the frame.",
                         .example = "hipress-test --nodes 4",
                         .needs_arguments = true};
  std::string name = "hipress-test";
  char* argv[] = {name.data()};
  const Capture out(std::cout), err(std::cerr);
  const int status = run_tool(
      1, argv, info, [](CLI::App&) {}, [] { return 0; });
  CHECK(status == 2);
  CHECK(out.text().empty());
  CHECK_THAT(err.text(), Catch::StartsWith("Example:\n  hipress-test --nodes 4\n") &&
                             Catch::Contains("\nUsage: hipress-test [OPTIONS]\n") &&
                             Catch::Contains("hipress-test --help"));
}

TEST_CASE("help has groups in the order of the headings, others behind them") {
  const ToolInfo info = {"hipress-test", "Tests the frame.", "hipress-test --nodes 4"};
  std::string name = "hipress-test", help = "--help";
  char* argv[] = {name.data(), help.data()};
  const Capture out(std::cout);
  bool flag = false;
  const auto declare = [&](CLI::App& app) {
    app.add_flag("--own", flag, "Own")->group("Own");
    app.add_flag("--json", flag, "JSON")->group("Output");
    app.add_flag("--input", flag, "Input")->group("The job");
  };
  CHECK(run_tool(2, argv, info, declare, [] { return 1; }) == 0);
  const std::string text = out.text();
  const std::size_t job = text.find("\nThe job:\n"), output = text.find("\nOutput:\n"),
                    own = text.find("\nOwn:\n"), help_group = text.find("\nHelp:\n");
  REQUIRE(own != std::string::npos);
  CHECK(job < output);
  CHECK(output < own);
  REQUIRE(help_group != std::string::npos);
}

TEST_CASE("an option of words takes these alone, and proposes one") {
  CLI::App app;
  std::string device;
  app.add_option("--device", device)->check(word_of({"cpu", "cuda"}));
  app.parse("--device=cuda");
  CHECK(device == "cuda");
  app.clear();
  CHECK_THROWS_WITH(app.parse("--device=cdua"),
                    "--device: must be one of cpu, cuda, got 'cdua'; did you mean 'cuda'?");
}

TEST_CASE("a flag takes no value, unless it stands for one") {
  for (const char* argument : {"--json", "-j", "--json=true", "--steady", "--steady=3"}) {
    CAPTURE(argument);
    CHECK(run({argument}, succeed).status == 0);
  }
  for (const char* argument : {"--json=2", "--json=5 us", "--json=1e400", "--json=false"}) {
    CAPTURE(argument);
    const Outcome outcome = run({argument}, succeed);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Contains("json is a flag, which takes no value: give it alone"));
  }
  CHECK(run({"--help=3"}, succeed).status == 2);
  CHECK(run({"--version=3"}, succeed).status == 2);
}

TEST_CASE("an option of a real number takes none that is not finite, or out of its range") {
  CLI::App app;
  double seconds = 1;
  app.add_option("--seconds", seconds)->check(number_from(0.1, 1e6));
  const auto parse = [&](const std::string& text) {
    app.clear();
    app.parse("--seconds=" + text);
    return seconds;
  };
  CHECK(parse("0.1") == 0.1);
  CHECK(parse("2e3") == 2000);
  CHECK(parse("1000000") == 1e6);
  for (const std::string wrong : {"nan", "-nan", "inf", "-inf", "1e10", "0.01", "-1", "1s"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(parse(wrong),
                      "--seconds: must be a number from 0.1 to 1000000, got '" + wrong + "'");
  }
}

TEST_CASE("an option of a count takes whole decimal numbers of its range and nothing else") {
  CLI::App app;
  std::uint64_t seed = 1;
  unsigned jobs = 1;
  app.add_option("--seed", seed)->check(count_from(0));
  app.add_option("--jobs", jobs)->check(count_from(1, 4096));
  const auto parse = [&](const std::string& option, const std::string& text) {
    app.clear();
    app.parse(option + "=" + text);
  };
  parse("--seed", "18446744073709551615");
  CHECK(seed == UINT64_MAX);
  parse("--seed", "0");
  CHECK(seed == 0);
  parse("--jobs", "4096");
  CHECK(jobs == 4096);
  // -4294967295 would be 1 in 32 bits, and 010 would be 8 in octal.
  for (const std::string wrong :
       {"0", "4097", "-1", "-4294967295", "4294967297", "99999999999999999999", "1.0", "1e3",
        "0x10", "010", "+1", "many"}) {
    CHECK_THROWS_WITH(parse("--jobs", wrong),
                      "--jobs: must be a whole number from 1 to 4096, got '" + wrong + "'");
  }
  for (const std::string wrong : {"-1", "18446744073709551616", "99999999999999999999"}) {
    CHECK_THROWS_WITH(
        parse("--seed", wrong),
        "--seed: must be a whole number from 0 to 18446744073709551615, got '" + wrong + "'");
  }
}

TEST_CASE("what ran out is named with the remedy") {
  CHECK_THAT(fail_with(std::bad_alloc()).err,
             Catch::Contains("out of memory") && Catch::Contains("ulimit -v"));
  const auto no_thread = std::system_error(EAGAIN, std::generic_category());
  CHECK_THAT(fail_with(no_thread).err,
             Catch::StartsWith("hipress-test: Resource temporarily unavailable: a thread") &&
                 Catch::Contains("ulimit -u") && Catch::Contains("fewer threads"));
  CHECK_THAT(fail_with(std::system_error(EMFILE, std::generic_category())).err,
             Catch::Contains("ulimit -n"));
  CHECK(fail_with(no_thread).status == 1);
  // Other errors need no explanation.
  CHECK(describe(std::system_error(ENOENT, std::generic_category())) ==
        "No such file or directory");
  CHECK(describe(std::runtime_error("rank 2 died")) == "rank 2 died");
}

TEST_CASE("an error that nothing catches is a failed run that says why") {
  const TemporaryFolder folder;
  const std::string log = folder.path("log");
  const auto end_of = [&](const std::function<int()>& work) {
    Child child([&](const Child::Ready&) {
      const Descriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
      ::dup2(file.number(), STDERR_FILENO);
      const ToolInfo info{"hipress-test", "Tests the frame.", "hipress-test"};
      std::string name = "hipress-test";
      char* argv[] = {name.data()};
      return run_tool(
          1, argv, info, [](CLI::App&) {}, work);
    });
    return child.end();
  };
  SECTION("on a thread") {
    CHECK(end_of([] {
            std::jthread thread([] { throw std::bad_alloc(); });
            return 0;
          }) == 1);
    CHECK_THAT(read_file(log), Catch::StartsWith("hipress-test: out of memory: "));
  }
  SECTION("where a second thread could not be started, and the first is not joined") {
    CHECK(end_of([&]() -> int {
            const DoomedFile doomed(folder.file("doomed", "half"));
            const std::thread first([] { ::pause(); });
            throw std::system_error(EAGAIN, std::generic_category());
          }) == 1);
    CHECK_THAT(read_file(log), Catch::StartsWith("hipress-test: ") && Catch::Contains("ulimit -u"));
    CHECK_FALSE(std::filesystem::exists(folder.path("doomed")));
  }
  SECTION("that is no exception") {
    CHECK(end_of([]() -> int { std::terminate(); }) == 1);
    CHECK_THAT(read_file(log), Catch::Contains("could not be handled"));
  }
}

TEST_CASE("help opens with the example") {
  const Outcome outcome = run({"--help"}, [] { return 1; });
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Catch::StartsWith("Example:\n  hipress-test --nodes 4\n") &&
                              Catch::Contains("Tests the frame.") && Catch::Contains("--nodes"));
}

TEST_CASE("version names the tool, git, CUDA and NCCL") {
  const Outcome outcome = run({"--version"}, [] { return 1; });
  CHECK(outcome.status == 0);
  CHECK(outcome.out == "hipress-test " + version() + "\n");
  CHECK_THAT(version(), Catch::Matches(R"(\d+\.\d+\.\d+ \(git ([0-9a-f]+|unknown), )"
                                       R"(CUDA ([0-9.]+|none), NCCL ([0-9.]+|none)\))"));
}

TEST_CASE("results that do not arrive are a failed run") {
  const ToolInfo info{"hipress-test", "Tests the frame.", "hipress-test"};
  std::string name = "hipress-test";
  char* argv[] = {name.data()};
  std::ofstream full("/dev/full");
  std::streambuf* before = std::cout.rdbuf(full.rdbuf());
  const Capture err(std::cerr);
  const int status = run_tool(
      1, argv, info, [](CLI::App&) {},
      [] {
        std::cout << "a result";
        return 0;
      });
  std::cout.rdbuf(before);
  std::cout.clear();
  CHECK(status == 1);
  CHECK_THAT(err.text(), Catch::Contains("could not be written to standard output"));
}
