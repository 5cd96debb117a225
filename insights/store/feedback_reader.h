// What people said of issues, and how each rule fares by it, from the store of events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/issue_feedback.h"
#include "core/result.h"

namespace tocsin::insights {

class StoreDatabase;

/// Episodes that a rule reported, and what people said of them.
struct RuleTally {
  std::string rule;
  std::int64_t fired = 0;  // episodes; without those of rules in shadow
  std::int64_t useful = 0, noise = 0, known = 0;

  /// Of those that say whether it was right to tell, the share that was; nullopt: there is none.
  [[nodiscard]] std::optional<double> precision() const;
};

/// Made for one request, as EventReader.
class FeedbackReader {
 public:
  /// unavailable: there is no store yet, or it cannot be read.
  static core::Result<std::unique_ptr<FeedbackReader>> open(const std::string& path);
  ~FeedbackReader();

  /// The value of a record of `router-control`; nullopt: it is not there, or was taken back.
  std::optional<std::string> record(std::string_view key);
  /// Notes on this episode, oldest first.
  std::vector<core::IssueNote> notes(const core::IssueEpisode& of);
  /// By the name of the rule.
  std::vector<RuleTally> rules();
  /// What failed while reading, if anything did.
  core::Status failure();

 private:
  explicit FeedbackReader(std::unique_ptr<StoreDatabase> database);
  std::unique_ptr<StoreDatabase> database_;
};

}  // namespace tocsin::insights
