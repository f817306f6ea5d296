#include "transport/meeting.hpp"

#include <fmt/format.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <system_error>

#include "io/error.hpp"
#include "io/host.hpp"
#include "io/tool.hpp"
#include "transport/loopback.hpp"
#include "transport/redis_store.hpp"

namespace hipress::transport {
namespace {

using gloo::rendezvous::FileStore;
using gloo::rendezvous::HashStore;
using gloo::rendezvous::PrefixStore;
using gloo::rendezvous::Store;

/// Of the records, the card and the keys; raised when one of them changes within a release.
constexpr int kProtocol = 2;

/// Ranks with another one do not connect: they may expand a plan to another graph, or draw other
/// numbers.
std::string own_version() { return fmt::format("{}, protocol {}", io::release(), kProtocol); }

constexpr std::string_view kAccepted =
    "'file:///shared/folder', 'redis://host:port' or, for ranks that are threads of one process, "
    "'local:NAME'";

io::InputError refused(const JobOptions& options, const std::string& why) {
  return io::InputError(fmt::format("cannot meet at '{}': {}; a rendezvous is {}",
                                    options.rendezvous, why, kAccepted));
}

std::shared_ptr<FileStore> open_folder(const JobOptions& options, const std::string& path) {
  if (!path.starts_with('/')) throw refused(options, "the folder's path is not absolute");
  if (std::error_code error; !std::filesystem::is_directory(path, error)) {
    throw refused(options, fmt::format("there is no folder '{}'", path));
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw refused(options, fmt::format("rank {} may not write to the folder '{}' ({})",
                                       options.rank, path, std::strerror(errno)));
  }
  return std::make_shared<FileStore>(path);
}

std::shared_ptr<RedisStore> open_redis(const JobOptions& options, const std::string& address,
                                       Clock::time_point deadline) {
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  int port = 6379;  // Redis' own default
  if (colon != std::string::npos) {
    const char* const end = address.data() + address.size();
    const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end || port < 1 || port > 65535) {
      throw refused(options, "the port is not a number from 1 to 65535");
    }
  }
  if (host.empty()) throw refused(options, "the host is missing");
  try {
    return std::make_shared<RedisStore>(host, port, deadline);
  } catch (const std::exception& error) {
    throw refused(options, error.what());
  }
}

/// What holds the meeting has failed, no rank.
io::RunError lost(const JobOptions& options, const StoreLost& error) {
  return io::RunError(fmt::format("rank {} cannot meet others at '{}' within {} s: {}",
                                  options.rank, options.rendezvous, options.timeout_s,
                                  error.what()));
}

void check(const JobOptions& options) {
  if (options.size < 1)
    throw io::InputError(fmt::format("a job of {} ranks: 1 is the least", options.size));
  if (options.rank < 0 || options.rank >= options.size) {
    throw io::InputError(fmt::format("rank {} of a job of {} ranks: ranks are 0 to {}",
                                     options.rank, options.size, options.size - 1));
  }
  if (!(options.timeout_s >= kLeastTimeout_s && options.timeout_s <= kMostTimeout_s)) {
    throw io::InputError(fmt::format("a timeout of {} s: it must be from {} to {} s",
                                     options.timeout_s, kLeastTimeout_s, kMostTimeout_s));
  }
}

/// When to give up; io::InputError if the options make no sense.
Clock::time_point checked_deadline(const JobOptions& options) {
  check(options);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(options.timeout_s));
}

/// io::InputError, the same on all ranks, if one listens on loopback while another, by its boot id,
/// is on another host. `cards` are all ranks'.
void require_reachable(const std::vector<nlohmann::json>& cards) {
  const auto text = [&](std::size_t rank, const char* what) { return cards[rank].value(what, ""); };
  // Of two hosts a rank each; everybody is on another host than one of them.
  std::size_t here = 0;
  while (here < cards.size() && text(here, "boot").empty()) ++here;
  std::size_t there = here;
  while (there < cards.size() &&
         (text(there, "boot").empty() || text(there, "boot") == text(here, "boot"))) {
    ++there;
  }
  if (there >= cards.size()) return;
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const std::string address = text(rank, "loopback");
    if (address.empty() || text(rank, "boot").empty()) continue;
    const std::size_t far = text(rank, "boot") == text(here, "boot") ? there : here;
    throw io::InputError(fmt::format(
        "rank {} is on host {} and rank {} on host {}, but rank {} listens on loopback ({}), where "
        "only its own host reaches it: give --interface",
        far, text(far, "host"), rank, text(rank, "host"), rank, address));
  }
}

}  // namespace

/// FNV-1a, 64 bits.
std::uint64_t job_hash(const JobOptions& options) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    hash *= 1099511628211u;  // a separator: as if a zero byte followed
  };
  add(options.job);
  add(options.plan);
  return hash;
}

/// A store, and a view of it under the job's prefix.
struct Meeting::Stores {
  std::shared_ptr<Store> all;
  std::shared_ptr<FileStore> folder;  ///< `all`, if it is one
  std::unique_ptr<PrefixStore> job;
  std::string nonce;  ///< tells this rank from another one with the same number

  Stores(const JobOptions& options, Clock::time_point deadline) {
    const std::string& where = options.rendezvous;
    if (where.starts_with("file://")) {
      all = folder = open_folder(options, where.substr(7));
    } else if (where.starts_with("redis://")) {
      all = open_redis(options, where.substr(8), deadline);
    } else if (where.starts_with("local:")) {
      all = shared_by_name<HashStore>(where);
    } else {
      throw refused(options, "the kind is unknown");
    }
    const JobOptions job_only{.job = options.job, .plan = {}, .rendezvous = {}, .interface = {}};
    job = std::make_unique<PrefixStore>(fmt::format("hipress/{:016x}", job_hash(job_only)), *all);
    std::random_device random;
    nonce = fmt::format("{:08x}{:08x}", random(), random());
  }
};

Meeting::Meeting(const JobOptions& options)
    : options_(options), deadline_(checked_deadline(options)) {
  stores_ = std::make_unique<Stores>(options, deadline_);
  leave_card();
}

Meeting::~Meeting() = default;

std::string Meeting::key_of(int rank, const std::string& key) const {
  return fmt::format("{}/{}", rank, key);
}

void Meeting::meet() {
  std::vector<nlohmann::json> cards;
  for (int rank = 0; rank < options_.size; ++rank) {
    const std::vector<char> card = fetch(rank, "card");
    cards.push_back(nlohmann::json::parse(card, nullptr, false));
    compare(rank, cards.back());
  }
  require_reachable(cards);
}

void Meeting::leave_card() {
  const nlohmann::json card{{"version", own_version()}, {"size", options_.size},
                            {"plan", options_.plan},    {"timeout", options_.timeout_s},
                            {"nonce", stores_->nonce},  {"host", io::host_name()},
                            {"boot", io::boot_id()},    {"loopback", loopback(options_.interface)}};
  // A host's name may be any bytes; an error for that would be no help.
  const std::string text = card.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  publish("card", {text.begin(), text.end()});
}

bool Meeting::has(const std::string& key) const {
  try {
    stores_->job->wait({key}, std::chrono::milliseconds(1));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void Meeting::publish(const std::string& key, const std::vector<char>& text) {
  const std::string full = key_of(options_.rank, key);
  try {
    stores_->job->set(full, text);
  } catch (const StoreLost& error) {
    throw lost(options_, error);
  } catch (const std::exception& error) {
    if (!has(full)) {
      throw io::RunError(fmt::format("rank {} of job '{}' cannot leave its {} at '{}': {}",
                                     options_.rank, options_.job, key, options_.rendezvous,
                                     error.what()));
    }
    throw io::InputError(
        fmt::format("rank {} of job '{}' is taken at '{}': two ranks have this number, or an "
                    "earlier job with this "
                    "text left its {} behind; give every job its own text ({})",
                    options_.rank, options_.job, options_.rendezvous,
                    stores_->folder ? "files" : "keys", error.what()));
  }
}

void Meeting::compare(int rank, const nlohmann::json& card) const {
  const auto differs = [&](const char* what, const auto& mine) {
    const auto theirs = card.is_object() ? card.value(what, nlohmann::json()) : nlohmann::json();
    if (theirs == nlohmann::json(mine)) return;
    throw io::InputError(fmt::format(
        "rank {} of job '{}' has {} {}, rank {} has {}: ranks of one job must "
        "be started alike",
        rank, options_.job, what, theirs.dump(), options_.rank, nlohmann::json(mine).dump()));
  };
  differs("version", own_version());
  differs("size", options_.size);
  differs("plan", options_.plan);
  differs("timeout", options_.timeout_s);
  // A folder's files are not created atomically: of two ranks with one number only the later's card
  // stays.
  if (rank == options_.rank && card.value("nonce", "") != stores_->nonce) {
    throw io::InputError(fmt::format("rank {} of job '{}' exists twice at '{}'", rank, options_.job,
                                     options_.rendezvous));
  }
}

std::vector<char> Meeting::fetch(int rank, const std::string& key) {
  const std::string full = key_of(rank, key);
  // Zero would mean to wait for ever.
  const auto left =
      std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()),
               std::chrono::milliseconds(1));
  try {
    stores_->job->wait({full}, left);
    return stores_->job->get(full);
  } catch (const StoreLost& error) {
    throw lost(options_, error);
  } catch (const std::exception& error) {
    // Stores wait for whole milliseconds, which may end just before the deadline.
    if (Clock::now() + std::chrono::milliseconds(10) < deadline_) {
      throw io::RunError(fmt::format("rank {} cannot read the {} of rank {} at '{}': {}",
                                     options_.rank, key, rank, options_.rendezvous, error.what()));
    }
    throw PeerError(
        rank, fmt::format("rank {} did not come to '{}' within {} s; ranks meet when their job "
                          "text is the same, here '{}'",
                          rank, options_.rendezvous, options_.timeout_s, options_.job));
  }
}

void Meeting::clean_up() noexcept {
  if (!stores_->folder) return;
  for (const std::string& path : stores_->folder->getAllKeyFilePaths()) {
    std::error_code
        ignored;  // the files are then leftovers, which the next job of this text reports
    std::filesystem::remove(path, ignored);
  }
}

}  // namespace hipress::transport
