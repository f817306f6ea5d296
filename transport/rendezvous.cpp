#include "transport/rendezvous.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>

#include "io/digest.hpp"
#include "io/error.hpp"
#include "io/host.hpp"
#include "io/version.hpp"
#include "transport/file_store.hpp"
#include "transport/loopback.hpp"
#include "transport/redis_address.hpp"
#include "transport/redis_store.hpp"

namespace hipress::transport {
namespace {

/// Version of records, cards and keys. It is raised if one of them changes within a release.
constexpr int kProtocol = 6;

/// Ranks of different versions do not connect: they may expand a plan to different graphs, or draw
/// different random numbers.
std::string own_version() { return fmt::format("{}, protocol {}", io::release(), kProtocol); }

constexpr std::string_view kAccepted =
    "'file:///shared/folder', 'redis://host:port', 'rediss://host:port' (TLS) or, for ranks that "
    "are threads of one process, 'local:NAME'";

std::string place_of(const JobOptions& options) {
  return io::printable_path(without_password(options.rendezvous));
}

io::InputError refused(const JobOptions& options, const std::string& why) {
  return io::InputError(fmt::format("cannot meet at '{}': {}; a rendezvous is {}",
                                    place_of(options), why, kAccepted));
}

std::shared_ptr<Store> open_folder(const JobOptions& options, const std::string& path) {
  if (!path.starts_with('/')) throw refused(options, "the folder's path is not absolute");
  std::shared_ptr<Store> store;
  try {
    store = std::make_shared<FileStore>(path);
  } catch (const std::system_error&) {
    throw;  // this process lacks resources
  } catch (const std::exception& error) {
    throw refused(options, error.what());
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw refused(options,
                  fmt::format("rank {} may not write to the folder '{}' ({})", options.rank,
                              io::printable_path(path), std::strerror(errno)));
  }
  return store;
}

/// Error of a failed store; no rank is at fault.
io::RunError lost(const JobOptions& options, const StoreLost& error) {
  return io::RunError(fmt::format("rank {} cannot meet others at '{}' within {} s: {}",
                                  options.rank, place_of(options), options.timeout_s,
                                  error.what()));
}

std::shared_ptr<Store> open_redis(const JobOptions& options, Clock::time_point deadline) {
  try {
    return std::make_shared<RedisStore>(parse_redis_address(options.rendezvous), deadline);
  } catch (const StoreLost& error) {
    throw lost(options, error);
  } catch (const std::system_error&) {
    throw;
  } catch (const std::exception& error) {
    throw refused(options, error.what());
  }
}

std::shared_ptr<Store> open_store(const JobOptions& options, Clock::time_point deadline) {
  const std::string& where = options.rendezvous;
  if (options.store) return options.store;
  if (where.starts_with("file://")) return open_folder(options, where.substr(7));
  if (names_redis(where)) return open_redis(options, deadline);
  if (where.starts_with("local:")) return shared_by_name<LocalStore>(where);
  throw refused(options, "the kind is unknown");
}

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Secret derived from the user's secret and the job's id; nullopt if the user gave none.
std::optional<io::Digest> given_secret(const JobOptions& options) {
  if (options.secret.empty()) return std::nullopt;
  return io::hmac_sha256(bytes(options.secret), bytes("hipress job" + options.job));
}

/// Text field of a card; empty if absent or not a text. Anybody may have written the card.
std::string text_of(const nlohmann::json& card, const char* what) {
  const auto found = card.find(what);
  return found != card.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void check(const JobOptions& options) {
  if (options.size < 1)
    throw io::InputError(fmt::format("a job of {} ranks: 1 is the least", options.size));
  if (options.rank < 0 || options.rank >= options.size) {
    throw io::InputError(fmt::format("rank {} of a job of {} ranks: ranks are 0 to {}",
                                     options.rank, options.size, options.size - 1));
  }
  const auto require = [](std::string_view what, double given_s) {
    if (given_s >= kMinTimeout_s && given_s <= kMaxTimeout_s) return;
    throw io::InputError(fmt::format("{} of {} s: it must be from {} to {} s", what, given_s,
                                     kMinTimeout_s, kMaxTimeout_s));
  };
  require("a timeout", options.timeout_s);
  require("a limit for silence", options.silence_s);
}

/// Deadline of the rendezvous; throws io::InputError if the options are invalid.
Clock::time_point checked_deadline(const JobOptions& options) {
  check(options);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(options.timeout_s));
}

/// Throws io::InputError, the same on all ranks, if a rank listens on loopback and another rank is
/// on a different host (has a different boot id). `cards` holds one card per rank.
void require_reachable(const std::vector<nlohmann::json>& cards) {
  const auto text = [&](std::size_t rank, const char* what) { return text_of(cards[rank], what); };
  // Find ranks `here` and `there` on different hosts: no rank shares its host with both of them.
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
        "only its own host reaches it: give `interface`",
        far, text(far, "host"), rank, text(rank, "host"), rank, address));
  }
}

}  // namespace

/// FNV-1a, 64 bits.
std::uint64_t job_hash(const JobOptions& options) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    hash *= 1099511628211u;  // separator: a zero byte
  };
  add(options.job);
  add(options.plan);
  return hash;
}

void refuse(const JobOptions& options, const std::string& reason) noexcept {
  constexpr double kLongest_s = 5;  // limits waits for the rendezvous and late ranks
  try {
    JobOptions shortly = options;
    shortly.timeout_s = std::clamp(options.timeout_s, kMinTimeout_s, kLongest_s);
    shortly.silence_s = kDefaultSilence_s;
    if (options.size > 1) Rendezvous(shortly, reason).be_read();
  } catch (const std::exception&) {  // this rank has left a card already, or the rendezvous fails
  }
}

Rendezvous::Rendezvous(const JobOptions& options) : Rendezvous(options, {}) {}

Rendezvous::Rendezvous(const JobOptions& options, const std::string& refusal)
    : options_(options),
      place_(place_of(options)),
      deadline_(checked_deadline(options)),
      nonce_(io::to_hex(io::random_bytes(16))),
      seal_(given_secret(options)),
      store_(open_store(options, deadline_)) {
  leave_card(refusal);
}

std::string Rendezvous::name_of(int rank, const std::string& key) const {
  const JobOptions job_only{.job = options_.job, .plan = {}, .rendezvous = {}, .interface = {}};
  return fmt::format("hipress/{:016x}/{}/{}", job_hash(job_only), rank, key);
}

void Rendezvous::meet() {
  std::vector<nlohmann::json> cards;
  for (int rank = 0; rank < options_.size; ++rank) {
    const std::vector<char> card = fetch(rank, "card");
    cards.push_back(nlohmann::json::parse(card, nullptr, false));
    compare(rank, cards.back());
  }
  require_reachable(cards);
  agree_on_secret();
}

void Rendezvous::agree_on_secret() {
  if (const auto given = given_secret(options_)) {
    secret_.assign(given->begin(), given->end());
    return;
  }
  constexpr std::size_t kBytes = std::tuple_size_v<io::Digest>;
  if (options_.rank == 0) {
    const std::vector<std::byte> made = io::random_bytes(kBytes);
    publish("secret", {reinterpret_cast<const char*>(made.data()), made.size()},
            Keep::kForRendezvous);
  }
  const std::vector<char> found = fetch(0, "secret");
  if (found.size() != kBytes) {
    throw io::RunError(
        fmt::format("rank {} refuses the secret of rank 0 at '{}': it has {} bytes "
                    "instead of {}",
                    options_.rank, place_, found.size(), kBytes));
  }
  const auto all = std::as_bytes(std::span(found));
  secret_.assign(all.begin(), all.end());
}

void Rendezvous::leave_card(const std::string& refusal) {
  nlohmann::json card{{"rank", options_.rank},
                      {"version", own_version()},
                      {"size", options_.size},
                      {"plan", options_.plan},
                      {"nonce", nonce_},
                      {"timeout", options_.timeout_s},
                      {"silence", options_.silence_s},
                      {"host", io::host_name()},
                      {"boot", io::boot_id()},
                      {"loopback", loopback(options_.interface)}};
  constexpr std::size_t kLongestRefusal = 4096;
  if (!refusal.empty()) card["refused"] = refusal.substr(0, kLongestRefusal);
  // Replace invalid UTF-8: a host name may contain any bytes.
  publish("card", card.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
          Keep::kForGood);
}

void Rendezvous::publish(const std::string& key, const std::vector<char>& text) {
  publish(key, {text.data(), text.size()}, Keep::kForGood);
}

void Rendezvous::publish(const std::string& key, std::string_view text, Keep keep) {
  const std::string name = name_of(options_.rank, key);
  try {
    if (store_->add(name, seal_.close(name, text), keep)) return;
  } catch (const StoreLost& error) {
    throw lost(options_, error);
  } catch (const std::system_error&) {
    throw;
  } catch (const std::exception& error) {
    throw io::RunError(fmt::format("rank {} of job {} cannot leave its {} at '{}': {}",
                                   options_.rank, io::quote(options_.job), key, place_,
                                   error.what()));
  }
  throw io::InputError(
      fmt::format("rank {} of job {} is taken at '{}': two ranks have this number, or an earlier "
                  "job with this text left its {} behind; give every job its own text",
                  options_.rank, io::quote(options_.job), place_, store_->entries()));
}

void Rendezvous::compare(int rank, const nlohmann::json& card) const {
  if (const std::string reason = card.is_object() ? text_of(card, "refused") : "";
      !reason.empty()) {
    throw io::InputError(reason.starts_with("rank ") ? reason
                                                     : fmt::format("rank {}: {}", rank, reason));
  }
  const auto differs = [&](const char* what, const auto& mine) {
    const auto theirs = card.is_object() ? card.value(what, nlohmann::json()) : nlohmann::json();
    if (theirs == nlohmann::json(mine)) return;
    constexpr std::size_t kLongest = 200;
    throw io::InputError(
        fmt::format("rank {} of job {} has {} {}, rank {} has {}: ranks of one job must be "
                    "started alike",
                    rank, io::quote(options_.job), what, theirs.dump().substr(0, kLongest),
                    options_.rank, nlohmann::json(mine).dump()));
  };
  differs("version", own_version());
  differs("size", options_.size);
  differs("plan", options_.plan);
  differs("timeout", options_.timeout_s);
  differs("silence", options_.silence_s);
  if (card.value("rank", nlohmann::json()) != nlohmann::json(rank) ||
      (rank == options_.rank && text_of(card, "nonce") != nonce_)) {
    throw io::InputError(
        fmt::format("the card of rank {} of job {} at '{}' was replaced by another one: two ranks "
                    "have this number, or another process writes there",
                    rank, io::quote(options_.job), place_));
  }
}

std::vector<char> Rendezvous::fetch(int rank, const std::string& key) {
  const std::string name = name_of(rank, key);
  try {
    if (const auto item = store_->wait_for(name, deadline_)) {
      const std::string text = seal_.open(name, *item);
      return {text.begin(), text.end()};
    }
  } catch (const StoreLost& error) {
    throw lost(options_, error);
  } catch (const std::system_error&) {
    throw;
  } catch (const std::exception& error) {
    throw io::RunError(fmt::format("rank {} cannot read the {} of rank {} at '{}': {}",
                                   options_.rank, key, rank, place_, error.what()));
  }
  throw PeerError(
      rank, fmt::format("rank {} did not come to '{}' within {} s; ranks meet when their job text "
                        "is the same, here {}",
                        rank, place_, options_.timeout_s, io::quote(options_.job)));
}

void Rendezvous::be_read() {
  if (!store_->removes()) return;
  // Ranks poll about every 10 ms, but files in a shared folder may show up late.
  constexpr std::chrono::seconds kRead{1};
  bool all = true;
  for (int rank = 0; all && rank < options_.size; ++rank) {
    all = store_->wait_for(name_of(rank, "card"), deadline_).has_value();
  }
  if (all) std::this_thread::sleep_for(kRead);
  clean_up();
}

void Rendezvous::clean_up() noexcept { store_->remove_own(); }

}  // namespace hipress::transport
