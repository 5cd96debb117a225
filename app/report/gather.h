// What is known of the attempts of all runs, from the events of a cluster or of a judged recording.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "app/replay/judge.h"
#include "app/report/run_report.h"
#include "core/record.h"

namespace tocsin::app::report {

/// Under this name the report of a run that has ended says that it was written; not part of one.
inline constexpr const char* kReportRule = "run_report";

/// Events in the order of their partition; what cannot be read is passed over.
class Gathering {
 public:
  using Attempts = std::map<std::pair<core::RunUid, std::uint32_t>, RunReport>;

  /// Of the topics registry, issues and acks.
  void apply(const core::RecordView& record);
  void take(core::Issue issue);
  void take(const core::JobEvent& event);
  void take(const core::Ack& ack);
  void take(core::RuleStatusEvent event);

  [[nodiscard]] const Attempts& attempts() const noexcept { return attempts_; }

 private:
  RunReport& attempt(const core::RunRef& run);

  Attempts attempts_;
  std::map<std::pair<core::RunUid, std::uint32_t>, core::Ack> checkpoints_;
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> issues_;  // by key and attempt
};

/// Rules that said nothing of an attempt stand in it as without data.
Gathering::Attempts attempts_of(const Judgement& judgement, const embedded::ChosenRules& rules);

}  // namespace tocsin::app::report
