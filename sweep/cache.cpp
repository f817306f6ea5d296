#include "sweep/cache.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "io/digest.hpp"
#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kJournal = ".journal";
constexpr std::size_t kMostJournalBytes = std::size_t{1} << 30;
constexpr std::size_t kMostPlanBytes = std::size_t{64} << 20;

/// Longest time that a simulation can have: 53 days (sim::simulate()).
constexpr casync::Picoseconds kLongest{std::int64_t{1} << 62};

constexpr std::string_view kCheck = "# check ";

std::string plan_name(const std::string& key) { return key + ".yaml"; }

/// Last line of a stored plan: a checksum of its key and text.
std::string check_of(const std::string& key, const std::string& text) {
  return fmt::format("{}{}\n", kCheck, io::to_hex(io::sha256(key + '\n' + text)));
}

/// Outcome in a journal line: "1 iteration forward compute tasks host links wire", or "0" if the
/// plan does not exist. The last three are "-" if the sensitivity was not computed. 17 digits
/// restore doubles exactly.
std::string text_of(const Outcome& outcome) {
  if (!outcome.possible) return "0";
  std::string text = fmt::format("1 {} {} {} {}", outcome.iteration.count(),
                                 outcome.forward.count(), outcome.compute.count(), outcome.tasks);
  if (!outcome.sensitivity) return text + " - - -";
  const auto& [host_s, links_s, wire_s] = *outcome.sensitivity;
  return text + fmt::format(" {:.17g} {:.17g} {:.17g}", host_s, links_s, wire_s);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(' ');
    words.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return words;
}

template <typename Number>
bool parse(std::string_view text, Number& number) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last;
}

/// True if the outcome is possible: times are from 0 to kLongest, the iteration is positive, and
/// neither forward nor compute exceeds it.
bool is_credible(const Outcome& outcome) {
  if (!outcome.possible) return true;
  const auto is_time = [](casync::Picoseconds time) {
    return time.count() >= 0 && time <= kLongest;
  };
  const auto is_share = [](double seconds) {
    return std::abs(seconds) <= casync::to_seconds(kLongest);
  };  // no NaN
  return is_time(outcome.iteration) && is_time(outcome.forward) && is_time(outcome.compute) &&
         outcome.iteration.count() > 0 && outcome.forward <= outcome.iteration &&
         outcome.compute <= outcome.iteration && outcome.tasks > 0 &&
         (!outcome.sensitivity ||
          (is_share(outcome.sensitivity->host_s) && is_share(outcome.sensitivity->links_s) &&
           is_share(outcome.sensitivity->wire_s)));
}

std::optional<Outcome> outcome_of(std::span<const std::string_view> words) {
  if (words.size() == 1 && words[0] == "0") return Outcome{.possible = false};
  if (words.size() != 8 || words[0] != "1") return std::nullopt;
  std::int64_t times[3] = {};
  Outcome outcome;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!parse(words[i + 1], times[i])) return std::nullopt;
  }
  if (!parse(words[4], outcome.tasks)) return std::nullopt;
  outcome.iteration = casync::Picoseconds(times[0]);
  outcome.forward = casync::Picoseconds(times[1]);
  outcome.compute = casync::Picoseconds(times[2]);
  if (words[5] == "-" && words[6] == "-" && words[7] == "-") return outcome;
  Sensitivity sensitivity;
  if (!parse(words[5], sensitivity.host_s) || !parse(words[6], sensitivity.links_s) ||
      !parse(words[7], sensitivity.wire_s)) {
    return std::nullopt;
  }
  outcome.sensitivity = sensitivity;
  return outcome;
}

}  // namespace

Cache::Cache(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  if (fs::symlink_status(folder_, error).type() == fs::file_type::not_found) return;
  for (const std::string& name : open_folder().names()) {
    if (!name.ends_with(kJournal)) continue;
    if (const auto journal = open_->read(name, kMostJournalBytes)) read(*journal);
  }
}

const io::PrivateFolder& Cache::open_folder() {
  if (open_) return *open_;
  open_.emplace(folder_, "give another `cache`, or none", io::PrivateFolder::For::kResults);
  open_->require_writable();
  return *open_;
}

/// Reads the lines of a journal: "key outcome checksum". A killed process may truncate its last
/// line.
void Cache::read(std::string_view content) {
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = content.find('\n', begin);
    if (end == std::string::npos) return;
    const std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t check = line.rfind(' ');
    if (check == std::string_view::npos) continue;
    const std::string_view said = line.substr(0, check);
    if (io::fingerprint(std::string(said)) != line.substr(check + 1)) continue;
    const std::vector<std::string_view> words = words_of(said);
    const auto outcome = outcome_of(std::span(words).subspan(1));
    if (!outcome || !is_credible(*outcome)) {
      ++incredible_;
      continue;
    }
    Outcome& known = outcomes_[std::string(words[0])];
    if (!known.sensitivity) known = *outcome;
  }
}

const Outcome* Cache::find(const std::string& key) const {
  const auto found = outcomes_.find(key);
  return found == outcomes_.end() ? nullptr : &found->second;
}

void Cache::open_journal() {
  const std::string name = io::to_hex(io::random_bytes(8)) + std::string(kJournal);
  journal_ = open_folder().create(name);
  journal_name_ = fmt::format("{}/{}", folder_, name);
}

void Cache::put(const std::string& key, const Outcome& outcome) {
  if (!is_credible(outcome)) return;
  const std::string said = key + ' ' + text_of(outcome);
  const std::string line = fmt::format("{} {}\n", said, io::fingerprint(said));
  const std::lock_guard lock(mutex_);
  if (!journal_) open_journal();
  if (io::write_all(journal_, line)) return;
  throw io::RunError(fmt::format("{}: cannot be written: {}; or do without it: `cache` none",
                                 journal_name_, io::remedy(errno)));
}

std::optional<std::string> Cache::find_plan(const std::string& key) const {
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return std::nullopt;
  }
  std::optional<std::string> text = open_->read(plan_name(key), kMostPlanBytes);
  if (!text) return std::nullopt;
  const std::size_t last = text->rfind(kCheck);
  if (last == std::string::npos) return std::nullopt;
  const std::string check = text->substr(last);
  text->resize(last);
  return check == check_of(key, *text) ? text : std::nullopt;
}

void Cache::put_plan(const std::string& key, const std::string& text) {
  const std::lock_guard lock(mutex_);
  open_folder().write({{plan_name(key), text + check_of(key, text)}});
}

}  // namespace hipress::sweep
