#include "job/connect.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "io/descriptors.hpp"
#include "io/error.hpp"
#include "job/exhaustion.hpp"

namespace hipress::job {
namespace {

/// Rethrows the most informative error: preferably a rank's own, not a report of a lost rank.
void rethrow_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr lost;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const transport::PeerError&) {
      if (!lost) lost = error;
    }
  }
  if (lost) std::rethrow_exception(lost);
}

/// Throws io::InputError if the process may not open the connections that its ranks need.
void allow_connections(const transport::TransportRow& row, int ranks, int collectives) {
  const transport::Descriptors each = row.descriptors(ranks);
  const std::int64_t needed = ranks * (each.connected + collectives * each.collective);
  const std::int64_t allowed = io::allow_descriptors(needed + ranks * each.strangers);
  if (allowed >= needed) return;
  throw io::InputError(
      fmt::format("{} ranks in one process need {} open files for their connections, and it may "
                  "have {}: raise the limit (ulimit -n), or start fewer ranks, or start them as "
                  "processes",
                  ranks, needed, allowed));
}

}  // namespace

std::unique_ptr<transport::Endpoint> connect_rank(const std::string& transport,
                                                  const transport::JobOptions& options,
                                                  int collectives) {
  return or_refuse(options, [&] {
    const transport::TransportRow& row = transport::find_transport(transport);
    const transport::Descriptors each = row.descriptors(options.size);
    const std::int64_t needed = each.connected + collectives * each.collective;
    // Check before the ranks meet: if a rank failed only while it connects, the others would lose
    // it and might blame a different rank.
    if (const std::int64_t allowed = io::allow_descriptors(needed); allowed < needed) {
      throw io::InputError(
          fmt::format("rank {} needs {} open files for its connections, and it may have {}: raise "
                      "the limit (ulimit -n), or start fewer ranks",
                      options.rank, needed, allowed));
    }
    return row.connect(options);
  });
}

void run_thread_ranks(const std::string& transport, int ranks, double timeout_s,
                      const std::function<void(transport::Endpoint&)>& body, int collectives) {
  static std::atomic<int> jobs{0};
  const transport::TransportRow& row = transport::find_transport(transport);
  allow_connections(row, ranks, collectives);
  const std::string job = fmt::format("threads-{}-{}", getpid(), jobs++);
  rethrow_cause(run_together("rank", ranks, [&](int rank) {
    as_rank(rank, [&] {
      const auto endpoint = row.connect({.rank = rank,
                                         .size = ranks,
                                         .job = job,
                                         .plan = {},
                                         .rendezvous = "local:" + job,
                                         .interface = {},
                                         .timeout_s = timeout_s});
      body(*endpoint);
    });
  }));
}

}  // namespace hipress::job
