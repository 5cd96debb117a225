#include "app/replay/compare.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/labels.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using Key = std::pair<std::string, std::uint32_t>;

Key key_of(const core::Issue& issue) { return {core::issue_key(issue.labels), issue.run.attempt}; }

std::string step_of(const core::Issue* issue) {
  if (issue == nullptr) return "–";
  return issue->step ? std::to_string(*issue->step) : core::to_rfc3339(issue->time);
}

core::Value side(const core::Issue* issue) {
  if (issue == nullptr) return {};
  return core::ValueMap{{"id", issue->event_id},
                        {"step", issue->step ? core::Value(*issue->step) : core::Value()},
                        {"time", core::to_rfc3339(issue->time)},
                        {"severity", std::string(core::to_string(issue->severity))},
                        {"summary", issue->summary}};
}

std::array<std::uint64_t, 3> counts(const std::vector<Difference>& differences) {
  std::array<std::uint64_t, 3> out{};
  for (const Difference& one : differences) ++out[static_cast<std::size_t>(one.change)];
  return out;
}

}  // namespace

std::string_view to_string(Change change) noexcept {
  switch (change) {
    case Change::added:
      return "added";
    case Change::gone:
      return "gone";
    case Change::same:
      break;
  }
  return "same";
}

void LiveIssues::handle(const core::RecordView& record) {
  if (record.tombstone) return;
  auto decoded = ingest::decode_event(record);
  if (!decoded) return;
  auto* issue = std::get_if<core::Issue>(&decoded->event);
  if (issue == nullptr) return;
  if (rules_.contains(issue->rule)) {
    told_.events.push_back(std::move(*issue));
  } else {
    others_.insert(core::issue_key(issue->labels));
  }
}

std::vector<Difference> compare(const std::vector<IssueStory>& ours,
                                const std::vector<IssueStory>& theirs,
                                const std::optional<core::WallTime>& first,
                                const std::optional<core::WallTime>& end, const RunFilter& judged) {
  const auto within = [&](const core::Issue& issue) {
    return (!first || issue.time >= *first) && (!end || issue.time < *end);
  };
  std::map<Key, const core::Issue*> live;
  for (const IssueStory& story : theirs) live[key_of(*story.first)] = story.first;
  std::vector<Difference> out;
  for (const IssueStory& story : ours) {
    const auto found = live.find(key_of(*story.first));
    if (found != live.end()) {
      out.push_back({Change::same, story.first, found->second});
      live.erase(found);
    } else if (within(*story.first)) {
      out.push_back({Change::added, story.first, nullptr});
    }
  }
  for (const IssueStory& story : theirs) {
    if (!live.contains(key_of(*story.first)) || !within(*story.first)) continue;
    if (!judged(story.first->run.uid)) continue;
    out.push_back({Change::gone, nullptr, story.first});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.change < b.change; });
  return out;
}

std::string difference_text(const std::vector<Difference>& differences, std::uint64_t others) {
  std::vector<core::TableRow> rows{
      {"CHANGE", "STEP", "LIVE", "SEVERITY", "RULE", "JOB", "RUN", "WHAT"}};
  for (const Difference& one : differences) {
    const core::Issue& issue = one.ours != nullptr ? *one.ours : *one.theirs;
    rows.push_back({std::string(to_string(one.change)), step_of(one.ours), step_of(one.theirs),
                    std::string(core::to_string(issue.severity)),
                    core::visible(issue.rule) + (issue.shadow ? " (shadow)" : ""),
                    core::visible(issue.run.job), core::to_text(issue.run.uid).substr(0, 8),
                    core::visible(issue.summary)});
  }
  const auto [added, gone, same] = counts(differences);
  std::string out = rows.size() > 1 ? core::text_table(rows) : "";
  out += "added " + std::to_string(added) + ", gone " + std::to_string(gone) + ", same " +
         std::to_string(same);
  if (others > 0) out += "; not compared: " + std::to_string(others) + " of other rules";
  return out + "\n";
}

core::Value difference_value(const std::vector<Difference>& differences) {
  core::ValueList list;
  for (const Difference& one : differences) {
    const core::Issue& issue = one.ours != nullptr ? *one.ours : *one.theirs;
    list.push_back(core::ValueMap{{"change", std::string(to_string(one.change))},
                                  {"rule", issue.rule},
                                  {"kind", issue.kind},
                                  {"job", issue.run.job},
                                  {"run", core::to_text(issue.run.uid)},
                                  {"attempt", std::int64_t{issue.run.attempt}},
                                  {"issue_key", core::issue_key(issue.labels)},
                                  {"replay", side(one.ours)},
                                  {"live", side(one.theirs)}});
  }
  const auto [added, gone, same] = counts(differences);
  return core::ValueMap{
      {"added", added}, {"gone", gone}, {"same", same}, {"differences", std::move(list)}};
}

}  // namespace tocsin::app
