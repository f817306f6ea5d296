#include "tools/sim/slurm.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <ostream>
#include <string_view>
#include <vector>

#include "io/child.hpp"
#include "io/digest.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "tools/frame.hpp"

namespace hipress::sweep {
namespace {

namespace fs = std::filesystem;

constexpr double kLongest_s = 30 * 86400;  // limit for waiting and running

/// Quotes a text for a shell.
std::string shell_word(std::string_view text) {
  std::string made = "'";
  for (const char c : text) made += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return made + "'";
}

/// Escapes a text for a file name pattern of sbatch, in which % starts a replacement.
std::string pattern_word(std::string_view text) {
  std::string made;
  for (const char c : text) made += c == '%' ? std::string("%%") : std::string(1, c);
  return made;
}

/// Names of one run's files. They are random, so concurrent runs with one output do not collide.
class Parts {
 public:
  explicit Parts(const std::string& output)
      : prefix_(fmt::format("{}.part-{}-", output, io::to_hex(io::random_bytes(8)))) {}
  const std::string& prefix() const { return prefix_; }
  std::string file(std::int64_t task) const { return fmt::format("{}{}", prefix_, task); }
  std::string log(std::int64_t task) const { return file(task) + ".log"; }
  std::string logs() const { return prefix_ + "*.log"; }
  std::string pattern_of_logs() const { return pattern_word(prefix_) + "%a.log"; }

 private:
  const std::string prefix_;
};

/// Command line of all tasks. Each task reads its number from its environment.
std::string command_of_task(const std::string& spec, const requests::SweepRequest& request,
                            const Parts& parts, const std::string& cache, std::int64_t tasks) {
  std::string text = fmt::format(
      "exec {} sweep {} --output {}\"$SLURM_ARRAY_TASK_ID\" --shard \"$SLURM_ARRAY_TASK_ID\"/{} "
      "--cache {} --evaluations {}",
      shell_word(fs::canonical("/proc/self/exe").string()),
      shell_word(spec.starts_with('{') ? spec : fs::absolute(spec).string()),
      shell_word(parts.prefix()), tasks, shell_word(cache), request.evaluations);
  text += request.jobs > 0 ? fmt::format(" --jobs {}", request.jobs)
                           : " --jobs \"${SLURM_CPUS_PER_TASK:-1}\"";
  if (request.no_intervals) text += " --no-intervals";
  if (!request.algorithms.empty()) text += " --algorithm " + shell_word(request.algorithms);
  if (request.trust.everything) text += " --trust-plan";
  return text;
}

void require_alone(const requests::SweepRequest& request) {
  if (request.shard != "1/1") {
    throw io::InputError("--slurm makes its own shards; leave --shard out");
  }
  std::error_code error;
  const fs::file_type kind = fs::status(request.output, error).type();
  if (kind != fs::file_type::regular && kind != fs::file_type::not_found) {
    throw io::InputError(fmt::format("{}: parts are joined to a file; give --output FILE.csv",
                                     io::quote(request.output)));
  }
  if (fs::absolute(request.output).string().find('\\') != std::string::npos) {
    throw io::InputError(
        fmt::format("{}: sbatch fills in nothing in names with a backslash; give "
                    "--output another name",
                    io::quote(request.output)));
  }
  io::require_writable(request.output);
}

void submit_and_wait(const Parts& parts, const std::string& command, std::int64_t tasks) {
  const io::ChildResult result = io::run_child(
      {.words = {"sbatch", "--wait", "--job-name=hipress-sweep", fmt::format("--array=1-{}", tasks),
                 "--ntasks=1", "--output=" + parts.pattern_of_logs(), "--wrap", command},
       .input = {},
       .environment = {},
       .timeout_s = kLongest_s});
  if (result.start_error == ENOENT) {
    throw io::InputError(
        "there is no sbatch on the PATH; run this on a machine of the Slurm cluster, or sweep "
        "here, "
        "without --slurm");
  }
  if (result.start_error == 0 && result.status == 0) return;
  throw io::RunError(
      fmt::format("the Slurm array has failed: {}logs of its tasks are {}; simulated points are "
                  "kept, and the same command continues from there",
                  result.output.empty() ? "" : result.output + "; ", parts.logs()));
}

void join(const std::string& output, const Parts& parts, std::int64_t tasks) {
  io::write_file(output, [&](std::ostream& out) {
    for (std::int64_t task = 1; task <= tasks; ++task) out << io::read_file(parts.file(task));
  });
  std::error_code ignored;
  for (std::int64_t task = 1; task <= tasks; ++task) fs::remove(parts.log(task), ignored);
}

void remove(const Parts& parts, std::int64_t tasks) {
  std::error_code ignored;
  for (std::int64_t task = 1; task <= tasks; ++task) fs::remove(parts.file(task), ignored);
}

}  // namespace

int sweep_by_slurm(const std::string& spec, const requests::SweepRequest& request,
                   std::int64_t tasks) {
  require_alone(request);
  requests::read_spec(request);  // reports errors in the spec before any task runs
  requests::SweepRequest absolute = request;
  absolute.output = fs::absolute(request.output).string();
  const std::string kept = requests::cache_folder(absolute);
  const std::string cache = kept.empty() ? "none" : fs::absolute(kept).string();
  tools::inform(
      fmt::format("submitting an array of {} Slurm tasks and waiting for its end", tasks));
  const Parts parts(absolute.output);
  try {
    submit_and_wait(parts, command_of_task(spec, absolute, parts, cache, tasks), tasks);
    join(absolute.output, parts, tasks);
  } catch (...) {
    remove(parts, tasks);
    throw;
  }
  remove(parts, tasks);
  return 0;
}

}  // namespace hipress::sweep
