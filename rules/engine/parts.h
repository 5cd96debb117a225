// The parts of an engine, each a small object (the inner rooms beside this file), and what they share.
#pragma once

#include <memory>

#include "rules/engine/frames/frame_handler.h"
#include "rules/engine/jobs/decisions.h"
#include "rules/engine/jobs/timers.h"
#include "rules/engine/partition/partition_table.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/engine/state/restore.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// What lives as long as the engine and belongs to no part alone.
struct EngineState {
  EngineOptions options;
  ConfiguredRules configured;  // a reload replaces them
  EngineStats stats;
  PartitionTable partitions{configured};
};

/// Parts hold references to each other: they stay where they are made.
struct EngineParts {
  std::unique_ptr<Reports> reports;
  std::unique_ptr<IssueBook> book;
  std::unique_ptr<OwnIssues> own;
  std::unique_ptr<SilenceWatch> silence;
  std::unique_ptr<Families> families;
  std::unique_ptr<Evaluations> evaluations;
  std::unique_ptr<RowJudge> rows;
  std::unique_ptr<Units> units;
  std::unique_ptr<StepBook> steps;
  std::unique_ptr<Samples> samples;
  std::unique_ptr<Dictionaries> dictionaries;
  std::unique_ptr<JobBook> jobs;
  std::unique_ptr<Ends> ends;
  std::unique_ptr<Reload> reload;
  std::unique_ptr<Comparisons> comparisons;
  std::unique_ptr<FurtherShards> further;
  std::unique_ptr<Decisions> decisions;
  std::unique_ptr<Timers> timers;
  std::unique_ptr<Attempts> attempts;
  std::unique_ptr<Intake> intake;
  std::unique_ptr<LifecycleFrames> lifecycle;
  std::unique_ptr<Arrivals> arrivals;
  std::unique_ptr<FrameHandler> frames;
  std::unique_ptr<Restore> restore;
};

/// Each part is made of those above it, by name: what is not made yet has no name there. `state` outlives them.
EngineParts make_parts(EngineState& state);

}  // namespace tocsin::rules
