#include "io/environment.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress::io;
using hipress::tests::complaint;

namespace {

constexpr const char* kVariables[] = {"RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_RANK",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_LOCALID",
                                      "SLURM_JOB_ID",
                                      "SLURM_STEP_NUM_TASKS",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "HIPRESS_DATA",
                                      "NO_COLOR"};

/// Sets these environment variables, and unsets all others that io reads, for its lifetime.
class Environment {
 public:
  Environment(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const char* name : kVariables) {
      const char* value = ::getenv(name);
      before_.emplace_back(name, value ? value : "");
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, std::string>> before_;
};

void check_launch(const std::string& launcher, int rank, int size, int local_rank) {
  const auto launch = read_launch();
  REQUIRE(launch);
  CHECK(launch->launcher == launcher);
  CHECK(launch->rank == rank);
  CHECK(launch->size == size);
  CHECK(launch->local_rank == local_rank);
}

}  // namespace

TEST_CASE("no launcher's variables: no launch") {
  const Environment environment{};
  CHECK_FALSE(read_launch());
}

TEST_CASE("each launcher's variables are understood") {
  SECTION("torchrun") {
    const Environment environment{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}};
    check_launch("torchrun", 5, 8, 1);
  }
  SECTION("plain, without a local rank") {
    const Environment environment{{"RANK", "0"}, {"WORLD_SIZE", "1"}};
    REQUIRE(read_launch());
    CHECK(read_launch()->size == 1);
  }
  SECTION("srun, also of fewer tasks than the job has") {
    const Environment environment({{"SLURM_JOB_ID", "7"},
                                   {"SLURM_PROCID", "3"},
                                   {"SLURM_NTASKS", "8"},
                                   {"SLURM_STEP_NUM_TASKS", "4"},
                                   {"SLURM_LOCALID", "1"}});
    check_launch("slurm", 3, 4, 1);
  }
  SECTION("Slurm's, by hand and outside of a job") {
    const Environment environment(
        {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}});
    check_launch("slurm", 3, 4, 1);
  }
  SECTION("mpirun, also inside a Slurm job whose batch script is process 0 of 4") {
    const Environment environment{{"OMPI_COMM_WORLD_RANK", "2"},
                                  {"OMPI_COMM_WORLD_SIZE", "3"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                  {"SLURM_JOB_ID", "7"},
                                  {"SLURM_PROCID", "0"},
                                  {"SLURM_NTASKS", "4"}};
    const auto launch = read_launch();
    REQUIRE(launch);
    CHECK(launch->launcher == "openmpi");
    CHECK(launch->rank == 2);
    CHECK(launch->size == 3);
  }
}

TEST_CASE("a Slurm job is no launcher where srun has started nothing, or one task") {
  SECTION("one task") {
    const Environment environment{
        {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}};
    CHECK_FALSE(read_launch());
  }
  SECTION("an interactive step in an allocation of four tasks") {
    const Environment environment{{"SLURM_JOB_ID", "7"},
                                  {"SLURM_PROCID", "0"},
                                  {"SLURM_NTASKS", "4"},
                                  {"SLURM_STEP_NUM_TASKS", "1"}};
    CHECK_FALSE(read_launch());
  }
  SECTION("a batch script") {
    const Environment environment{{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}};
    CHECK_FALSE(read_launch());
  }
  SECTION("a batch script with --ntasks=4") {
    const Environment environment{
        {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
    CHECK_FALSE(read_launch());
  }
  SECTION("a number without a size") {
    const Environment environment{{"SLURM_PROCID", "0"}};
    CHECK_FALSE(read_launch());
  }
  SECTION("an allocation without a launched process") {
    const Environment environment{{"SLURM_NTASKS", "4"}};
    CHECK_FALSE(read_launch());
  }
}

TEST_CASE("variables that make no sense are named") {
  SECTION("half a pair") {
    const Environment environment{{"RANK", "0"}};
    CHECK(complaint([] { read_launch(); }) ==
          "environment variable RANK is set but WORLD_SIZE is not; set or unset both");
  }
  SECTION("the other half") {
    const Environment environment{{"OMPI_COMM_WORLD_SIZE", "2"}};
    CHECK(
        complaint([] { read_launch(); }) ==
        "environment variable OMPI_COMM_WORLD_SIZE is set but OMPI_COMM_WORLD_RANK is not; set or "
        "unset both");
  }
  SECTION("a rank outside the job") {
    const Environment environment{{"RANK", "4"}, {"WORLD_SIZE", "4"}};
    CHECK(complaint([] { read_launch(); }) ==
          "environment variable RANK must be at most 3, got '4'");
  }
  SECTION("a job without ranks") {
    const Environment environment{{"RANK", "0"}, {"WORLD_SIZE", "0"}};
    CHECK(complaint([] { read_launch(); }) ==
          "environment variable WORLD_SIZE must be a positive integer, got '0'");
  }
  SECTION("no number") {
    const Environment environment{{"SLURM_PROCID", "two"}, {"SLURM_NTASKS", "4"}};
    CHECK(complaint([] { read_launch(); }) ==
          "environment variable SLURM_PROCID must be a non-negative integer, got 'two'");
  }
}

TEST_CASE("NO_COLOR counts when it is not empty") {
  SECTION("unset") {
    const Environment environment{};
    CHECK_FALSE(no_color());
  }
  SECTION("empty") {
    const Environment environment{{"NO_COLOR", ""}};
    CHECK_FALSE(no_color());
  }
  SECTION("set") {
    const Environment environment{{"NO_COLOR", "1"}};
    CHECK(no_color());
  }
}

TEST_CASE("a process takes the GPU of its local rank") {
  const auto local = [](int rank) {
    return std::optional<Launch>(
        {.rank = 8 + rank, .size = 16, .local_rank = rank, .launcher = ""});
  };
  SECTION("one each") {
    CHECK(choose_gpu(local(0), 8) == 0);
    CHECK(choose_gpu(local(7), 8) == 7);
  }
  SECTION("without a launcher the first") { CHECK(choose_gpu(std::nullopt, 8) == 0); }
  SECTION("the only one that it sees") { CHECK(choose_gpu(local(3), 1) == 0); }
  SECTION("more ranks than GPUs") {
    CHECK(complaint([&] { choose_gpu(local(4), 4); }) ==
          "local rank 4 has no GPU of its own: CUDA shows 4; start at most 4 ranks per machine");
  }
  SECTION("no GPU") {
    CHECK(complaint([&] { choose_gpu(local(0), 0); }) ==
          "CUDA shows this process no GPU; see that nvidia-smi lists one, and what "
          "CUDA_VISIBLE_DEVICES says");
  }
}

TEST_CASE("HIPRESS_DATA is where data lies, and nowhere else is") {
  const hipress::tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("models"));
  const std::string own = folder.file("models/own.yaml", "");
  const Environment environment{{"HIPRESS_DATA", folder.path("").c_str()}};
  CHECK(data_names("models", ".yaml") == std::vector<std::string>{"own"});
  CHECK(data_file("models/own.yaml") == own);
  CHECK_THAT(complaint([] { data_file("models/vgg19.yaml"); }),
             Catch::Matchers::Contains("looked for " + folder.path("")));
}
