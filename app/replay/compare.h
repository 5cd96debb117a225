// What would have fired beside what did.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "app/replay/judgement_text.h"
#include "core/record.h"

namespace tocsin::app {

/// Issues that the live engine told, folded from topic `issues`.
class LiveIssues {
 public:
  /// `rules`: names of the rules that are compared; reports of others are only counted.
  explicit LiveIssues(std::set<std::string> rules) : rules_(std::move(rules)) {}
  void handle(const core::RecordView& record);
  /// Of the rules that are compared, in the order of the topic.
  [[nodiscard]] const Judgement& told() const { return told_; }
  [[nodiscard]] std::uint64_t others() const { return others_.size(); }

 private:
  std::set<std::string> rules_;
  std::set<std::string> others_;  // their issue keys
  Judgement told_;
};

enum class Change { added, gone, same };
std::string_view to_string(Change change) noexcept;

struct Difference {
  Change change = Change::same;
  const core::Issue* ours = nullptr;    // first report of the replay; null when gone
  const core::Issue* theirs = nullptr;  // first report that was live; null when added
};

/// Issues are the same when key and attempt are, whatever their severity, parameters and ids. Only
/// those whose condition was seen in [first, end) count as gone, and as added; nullopt: no bound.
/// Gone are only issues of runs that were `judged`.
std::vector<Difference> compare(const std::vector<IssueStory>& ours,
                                const std::vector<IssueStory>& theirs,
                                const std::optional<core::WallTime>& first,
                                const std::optional<core::WallTime>& end, const RunFilter& judged);

/// A table, the changes first, and a line that counts them.
std::string difference_text(const std::vector<Difference>& differences, std::uint64_t others);
/// The same for programs: {"added", "gone", "same"} and a list.
core::Value difference_value(const std::vector<Difference>& differences);

}  // namespace tocsin::app
