#include "tools/options/job.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "io/error.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"
#include "transport/secret_file.hpp"

namespace hipress::tools {

void JobOptions::read_secret() {
  if (secret_file) secret = transport::read_secret_file(*secret_file);
}

void JobOptions::warn_of_unused(const std::optional<io::Launch>& launch,
                                const JobOptions& untouched, bool nccl) const {
  if (launch) return;
  const auto check = [](const char* option, bool given) {
    if (!given) return;
    warn(fmt::format("{} has no effect: no launcher started this process, so its ranks are threads",
                     option));
  };
  check("--rendezvous", rendezvous != untouched.rendezvous);
  check("--job", name != untouched.name);
  check("--secret-file", secret_file.has_value());
  check("--interface", interface != untouched.interface && !nccl);
  check("--silence", silence_s != untouched.silence_s);
  check("--insecure", insecure);
}

void JobOptions::apply(transport::JobOptions& job) const {
  job.job = name;
  job.rendezvous = rendezvous;
  job.interface = interface;
  job.secret = secret;
  job.insecure = insecure;
  job.silence_s = silence_s;
  job.notice = warn;
}

void declare(CLI::App& app, JobOptions& options, const JobHelp& help) {
  app.add_option("--rendezvous", options.rendezvous, std::string(help.rendezvous));
  app.add_option("--interface", options.interface, std::string(help.interface));
  app.add_option("--job", options.name, "Name that tells jobs apart that meet in one place")
      ->capture_default_str();
  app.add_option("--secret-file", options.secret_file,
                 "File with a secret of at least 16 bytes (mode 0600), the same for every rank "
                 "(default: rank 0 leaves a secret at the rendezvous)");
  app.add_option("--silence", options.silence_s,
                 "Seconds after which a process that sends nothing, not even the beats that it "
                 "sends while it computes, counts as dead")
      ->check(number_from(transport::kMinTimeout_s, transport::kMaxTimeout_s))
      ->capture_default_str();
  app.add_flag("--insecure", options.insecure,
               "Let --transport gloo, which authenticates nobody, listen beyond loopback; only for "
               "networks that nobody else can reach");
}

std::uint32_t size_of(const io::Launch& launch, std::uint32_t nnodes) {
  const auto size = static_cast<std::uint32_t>(launch.size);
  if (nnodes == 0 || nnodes == size) return size;
  throw io::InputError(
      fmt::format("--nnodes is {}, but {} started {} ranks", nnodes, launch.launcher, size));
}

void require_rendezvous(const io::Launch& launch, const JobOptions& options) {
  if (!options.rendezvous.empty() || launch.size == 1) return;
  throw io::InputError(
      fmt::format("rank {} of {} started by {} needs --rendezvous: file:///shared/folder, "
                  "redis://host:port or rediss://host:port",
                  launch.rank, launch.size, launch.launcher));
}

}  // namespace hipress::tools
