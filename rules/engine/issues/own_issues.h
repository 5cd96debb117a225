// What the engine says of itself and of jobs, without a rule of the user's (operational.h).
#pragma once

#include <cstdint>
#include <string>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/issues/reports.h"
#include "rules/engine/partition/script_alert.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class OwnIssues {
 public:
  OwnIssues(const EngineOptions& options, Reports& reports, IssueBook& book)
      : options_(options), reports_(reports), book_(book) {}

  void raise(const Turn& turn, Run& run, Operational which, std::uint32_t worker, std::int64_t time,
             Finding finding);
  void lower(const Turn& turn, Run& run, Operational which, std::uint32_t worker,
             std::int64_t time);
  /// A line of the run card.
  void sum_up(const Turn& turn, Run& run, Operational which, std::int64_t time,
              core::ValueMap told);
  /// What the script says: an issue per worker and title. Said again it is an issue anew, so that
  /// people hear of it anew.
  void tell(const Turn& turn, Run& run, std::uint32_t worker, std::int64_t time, ScriptAlert alert);
  /// Of a partition, or of a run that is not kept.
  void raise_plain(const Turn& turn, Operational which, const core::RunUid& run, std::int64_t time,
                   std::string summary);
  /// Of the partition that is being worked on.
  void tell_incomplete(const Turn& turn);
  /// A step has ended: did frames of it not arrive?
  void judge_gap(const Turn& turn, Run& run, std::uint32_t worker, const Place& place);

 private:
  /// The present moment, where the newest train step stands.
  static Place place_at(const Run& run, std::int64_t time);
  void make_room(const Turn& turn, Run& run, std::uint32_t rule, std::uint32_t worker,
                 const Place& place);

  const EngineOptions& options_;
  Reports& reports_;
  IssueBook& book_;
};

}  // namespace tocsin::rules
