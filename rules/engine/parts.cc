#include "rules/engine/parts.h"

#include <utility>

namespace tocsin::rules {

EngineParts make_parts(EngineState& state) {
  const EngineOptions& options = state.options;
  const ConfiguredRules& configured = state.configured;
  EngineStats& stats = state.stats;
  PartitionTable& partitions = state.partitions;
  auto reports = std::make_unique<Reports>(options, stats, configured);
  auto book = std::make_unique<IssueBook>(options, stats, configured, *reports);
  auto own = std::make_unique<OwnIssues>(options, *reports, *book);
  auto silence = std::make_unique<SilenceWatch>(*book);
  auto families = std::make_unique<Families>(options, stats);
  auto evaluations = std::make_unique<Evaluations>(options, stats, *book);
  auto rows = std::make_unique<RowJudge>(*book);
  auto units = std::make_unique<Units>(options, stats);
  auto steps = std::make_unique<StepBook>(stats, *evaluations);
  auto samples = std::make_unique<Samples>(options, stats, *evaluations);
  auto dictionaries = std::make_unique<Dictionaries>(options, stats);
  auto jobs = std::make_unique<JobBook>(options, stats, configured, *reports);
  auto ends = std::make_unique<Ends>(stats, *reports, *book, *own, *evaluations, *families, *rows,
                                     *steps, *samples, *jobs, *silence);
  auto reload = std::make_unique<Reload>(stats, *reports, *book, *jobs);
  auto comparisons = std::make_unique<Comparisons>(stats, *evaluations);
  auto further = std::make_unique<FurtherShards>(*ends);
  auto decisions = std::make_unique<Decisions>(options, configured, *book, *own, *steps, *silence,
                                               *ends, *reload, *comparisons, *further);
  auto timers = std::make_unique<Timers>(options, *silence, *decisions);
  auto attempts = std::make_unique<Attempts>(options, stats, partitions, *own, *ends, *decisions);
  auto intake = std::make_unique<Intake>(stats, *own, *evaluations, *rows, *units, *steps, *jobs);
  auto lifecycle = std::make_unique<LifecycleFrames>(*own, *steps, *jobs, *ends);
  auto arrivals = std::make_unique<Arrivals>(options, stats, *book, *intake);
  auto frames = std::make_unique<FrameHandler>(options, stats, *reports, *silence, *evaluations,
                                               *samples, *dictionaries, *ends, *attempts, *intake,
                                               *lifecycle, *arrivals);
  auto restore = std::make_unique<Restore>(stats, configured, partitions, *book);
  return {.reports = std::move(reports),
          .book = std::move(book),
          .own = std::move(own),
          .silence = std::move(silence),
          .families = std::move(families),
          .evaluations = std::move(evaluations),
          .rows = std::move(rows),
          .units = std::move(units),
          .steps = std::move(steps),
          .samples = std::move(samples),
          .dictionaries = std::move(dictionaries),
          .jobs = std::move(jobs),
          .ends = std::move(ends),
          .reload = std::move(reload),
          .comparisons = std::move(comparisons),
          .further = std::move(further),
          .decisions = std::move(decisions),
          .timers = std::move(timers),
          .attempts = std::move(attempts),
          .intake = std::move(intake),
          .lifecycle = std::move(lifecycle),
          .arrivals = std::move(arrivals),
          .frames = std::move(frames),
          .restore = std::move(restore)};
}

}  // namespace tocsin::rules
