// Reports of issues that one record brought, until the record is done: rules judge it one after the
// other, so what they find comes in the order of rules, and is told in that of training.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "rules/engine/memory/open_issue.h"
#include "rules/engine/memory/run.h"

namespace tocsin::rules {

struct HeldReport {
  Onset at;  // where it stands, not where its issue began
  Run* run = nullptr;
  OpenKey key;
  core::Issue issue;
  Beginning beginning;
};

class HeldReports {
 public:
  static constexpr std::uint8_t kNoStage = 0xFF;  // behind those that have one

  void add(HeldReport report) { held_.push_back(std::move(report)); }
  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
  /// Something ends at `global_step`: true where one of these reports has to be told before it,
  /// because it is of the same issue, or of an earlier step, when that issue still fired.
  [[nodiscard]] bool come_before(const OpenKey& key, std::int64_t global_step) const;
  /// All of them, in the order of training; of one place as they came.
  [[nodiscard]] std::vector<HeldReport> take();

 private:
  std::vector<HeldReport> held_;
};

}  // namespace tocsin::rules
