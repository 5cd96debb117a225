#include "insights/store/feedback_reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "core/fields/issue_feedback.h"
#include "core/topics.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

// As EventWriter::saw_control() numbers them.
std::string slot_of(std::string_view key) {
  return std::string("control/") + core::topic::kRouterControl + "/" + std::string(key);
}

}  // namespace

std::optional<double> RuleTally::precision() const {
  if (useful + noise == 0) return std::nullopt;
  return static_cast<double>(useful) / static_cast<double>(useful + noise);
}

FeedbackReader::FeedbackReader(std::unique_ptr<StoreDatabase> database)
    : database_(std::move(database)) {}
FeedbackReader::~FeedbackReader() = default;
core::Status FeedbackReader::failure() { return database_->failure(); }

core::Result<std::unique_ptr<FeedbackReader>> FeedbackReader::open(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return core::unavailable("nothing is kept yet");
  auto database = StoreDatabase::open(path, false);
  if (!database) return database.error();
  const std::int64_t version = (*database)->number("PRAGMA user_version");
  if (const auto status = (*database)->failure(); !status) return status.error();
  if (version == 0) return core::unavailable("the store is being made; ask again in a moment");
  return std::unique_ptr<FeedbackReader>(new FeedbackReader(std::move(*database)));
}

std::optional<std::string> FeedbackReader::record(std::string_view key) {
  StoreStatement get = database_->prepare("SELECT value FROM event WHERE slot = ?");
  get.bind(1, std::string_view(slot_of(key)));
  if (!get.next() || get.null(0)) return std::nullopt;
  return get.text(0);
}

std::vector<core::IssueNote> FeedbackReader::notes(const core::IssueEpisode& of) {
  StoreStatement get = database_->prepare(
      "SELECT value FROM event WHERE kind = 'control' AND run = ?1"
      " AND slot >= ?2 AND slot < ?3 AND value IS NOT NULL");
  const std::string first = slot_of(core::kNotePrefix);
  std::string behind = first;
  behind.back() = '0';  // behind '/'
  get.bind(1, std::string_view(of.run)).bind(2, std::string_view(first));
  get.bind(3, std::string_view(behind));
  std::vector<core::IssueNote> out;
  while (get.next()) {
    auto note = core::read_issue_note(get.text(0));
    if (note && note->of.issue == of.issue && note->of.event_id == of.event_id)
      out.push_back(std::move(*note));
  }
  std::sort(out.begin(), out.end(),
            [](const core::IssueNote& a, const core::IssueNote& b) { return a.at < b.at; });
  return out;
}

std::vector<RuleTally> FeedbackReader::rules() {
  std::map<std::string, RuleTally> by_name;
  StoreStatement fired = database_->prepare(
      "SELECT rule, count(*) FROM issue WHERE NOT shadow AND rule <> '' GROUP BY rule");
  while (fired.next()) {
    RuleTally& one = by_name[fired.text(0)];
    one.rule = fired.text(0);
    one.fired = fired.integer(1);
  }
  const std::string first = slot_of(core::kVerdictPrefix);
  StoreStatement said = database_->prepare(
      "SELECT i.rule, e.value FROM event e JOIN issue i ON e.slot = ?1 || i.key || '/' ||"
      " i.event_id WHERE NOT i.shadow AND e.value IS NOT NULL");
  said.bind(1, std::string_view(first));
  while (said.next()) {
    const auto found = by_name.find(said.text(0));
    const auto verdict = core::read_issue_verdict(said.text(1));
    if (!verdict || found == by_name.end()) continue;
    RuleTally& one = found->second;
    ++(verdict->verdict == "useful"  ? one.useful
       : verdict->verdict == "noise" ? one.noise
                                     : one.known);
  }
  std::vector<RuleTally> out;
  out.reserve(by_name.size());
  for (auto& [name, tally] : by_name) out.push_back(std::move(tally));
  return out;
}

}  // namespace tocsin::insights
