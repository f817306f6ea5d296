#include "requests/ranks.hpp"

#include <fmt/format.h>

#include "io/error.hpp"
#include "requests/headings.hpp"
#include "transport/secret_file.hpp"

namespace hipress::requests {

void add(Fields& fields, RankOptions& options, const std::string& transport, const RankHelp& help) {
  const Case on_threads = when([] { return !io::read_launch(); },
                               "no launcher started this process, so its ranks are threads");
  fields.under(headings::kRun);
  fields.add("rendezvous", &options.rendezvous, std::string(help.rendezvous)).idle(on_threads);
  fields.add("interface", &options.interface, std::string(help.interface)).idle([=, &transport] {
    return transport == "nccl" ? std::string() : on_threads();
  });
  fields
      .add("job", &options.job, "Name of the job; jobs with different names may share a rendezvous")
      .with_default()
      .idle(on_threads);
  fields
      .add("secret_file", &options.secret_file,
           "File with a secret of at least 16 bytes (mode 0600), the same for every rank "
           "(default: rank 0 leaves a secret at the rendezvous)")
      .file()
      .idle(on_threads);
  fields
      .add("silence", &options.silence_s,
           "Seconds of silence after which a process counts as dead; living processes send "
           "heartbeats while they compute")
      .between(transport::kMinTimeout_s, transport::kMaxTimeout_s)
      .with_default()
      .idle(on_threads);
  fields
      .add("insecure", &options.insecure,
           "Let `transport` gloo, which does not authenticate, listen beyond loopback; only for "
           "networks that no one else can reach")
      .idle(on_threads);
}

transport::JobOptions job_options(const RankOptions& options,
                                  const std::optional<io::Launch>& launch, const Hooks& hooks) {
  transport::JobOptions job;
  if (options.secret_file) job.secret = transport::read_secret_file(*options.secret_file);
  job.job = options.job;
  job.rendezvous = options.rendezvous;
  job.interface = options.interface;
  job.insecure = options.insecure;
  job.silence_s = options.silence_s;
  job.notice = hooks.warn;
  if (launch) {
    job.rank = launch->rank;
    job.size = launch->size;
  }
  return job;
}

std::uint32_t size_of(const io::Launch& launch, std::uint32_t nnodes, const RankOptions& options) {
  const auto size = static_cast<std::uint32_t>(launch.size);
  if (nnodes != 0 && nnodes != size) {
    throw io::InputError(
        fmt::format("`nnodes` is {}, but {} started {} ranks", nnodes, launch.launcher, size));
  }
  if (size > 1 && options.rendezvous.empty()) {
    throw io::InputError(
        fmt::format("rank {} of {} started by {} needs `rendezvous`: file:///shared/folder, "
                    "redis://host:port or rediss://host:port",
                    launch.rank, launch.size, launch.launcher));
  }
  return size;
}

}  // namespace hipress::requests
