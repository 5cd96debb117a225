// What is known of one attempt of a run, and the report that is made of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/report/page.h"
#include "core/command.h"
#include "core/issue.h"
#include "core/run_told.h"

namespace tocsin::app::report {

/// One issue from its first report to its last.
struct IssueTold {
  core::Issue first;
  core::Issue last;
  std::uint64_t reports = 0;
};

/// A message about issues of the run, as far as it came.
struct MessageSent {
  core::WallTime at{};
  std::string receiver;
  std::string way;     // "webhook"
  std::string about;   // "digits: loss is NaN"; empty: the outbox has it no more
  std::string state;   // delivered, dead, …
  std::string answer;  // the newest, as the other side gave it
};

struct RunReport {
  core::RunRef run;
  std::string source;                     // where this was read: "journal ./run1"
  std::string judged_by;                  // which rules
  std::string outcome;                    // how the attempt ended; empty: no end of it is known
  std::optional<core::WallTime> started;  // if it was told
  std::optional<core::WallTime> newest;   // the newest that was heard of it
  std::optional<std::int64_t> step;       // newest
  std::uint32_t world_size = 0;           // workers; 0: not known
  std::optional<core::Ack> checkpoint;    // the answer to a stop that names one, and its node
  std::optional<core::StopTold> stop;     // the newest that was asked
  /// In the order in which they were decided; nullopt: neither these nor the stop were looked for.
  std::optional<std::vector<MessageSent>> messages;
  /// The store that tells of messages and the stop had not read this far yet, and by how much. 0 s:
  /// by how much is not known. nullopt: it had read all there was.
  std::optional<core::Duration> store_behind;
  std::vector<IssueTold> issues;             // in the order in which they began
  std::vector<core::RuleStatusEvent> rules;  // the newest status of each
  std::uint64_t gaps = 0;                    // places where records are missing
};

/// Summary of the run, its issues, and what the rules sum up that do (docs/report.md). `made`: when
/// the report is.
/// `curves`: how the training went, where it is known; without blocks: it is not.
Page compose(const RunReport& report, Section curves, const std::string& version,
             core::WallTime made);
/// The same for programs: the issues and the summaries as they are.
std::string report_json(const RunReport& report);

}  // namespace tocsin::app::report
