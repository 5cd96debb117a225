#include "app/stages/scalars.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/topics.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostScalarRuns = 10'000;
constexpr std::size_t kMostScalarNames = 10'000;     // of one run
constexpr std::size_t kMostScalarWorkers = 100'000;  // the same
constexpr std::size_t kKindOfFrame = 6;              // its byte in the header

// Most records are statistics of tensors: they are not worth a checksum here.
bool may_tell_scalars(const core::RecordView& record) {
  const std::string_view text = record.text();
  if (!text.starts_with("TCSN") || text.size() <= kKindOfFrame) return true;
  const auto kind = static_cast<core::FrameKind>(text[kKindOfFrame]);
  return kind == core::FrameKind::scalar || kind == core::FrameKind::dictionary ||
         kind == core::FrameKind::lifecycle;
}

}  // namespace

ScalarsStage::ScalarsStage(actions::TrainingScalars& scalars, JobOf job_of,
                           core::Telemetry& telemetry)
    : scalars_(scalars),
      job_of_(std::move(job_of)),
      refused_(telemetry.counter("tocsin_router_scalars_refused_total",
                                 "values of scalars that publish_metric did not keep, over "
                                 "max_scalars",
                                 {})) {
  wiring_.name = "scalars";
  wiring_.part = "router";
  wiring_.topics = {core::topic::kTelemetry};
  wiring_.newest_only = true;
  wiring_.leader = true;
  wiring_.writes = false;
  wiring_.fetch_wait = std::chrono::milliseconds(500);  // a round is a second at least
}

core::Status ScalarsStage::open(const Instant& /*now*/) {
  runs_.clear();
  scalars_.forget();
  return core::ok();
}

// What cannot be read is told by the engine, which reads the same topic.
std::optional<Refusal> ScalarsStage::handle(const core::RecordView& record,
                                            const StageContext& context) {
  if (record.tombstone || !may_tell_scalars(record)) return std::nullopt;
  (void)ingest::decode_telemetry(
      record, json_, [&](const core::FrameView& frame, const core::FrameBody& body) {
        const core::FrameHeader& header = frame.header();
        if (header.rank == core::kNodeAgentRank) return;
        Names* names = names_of(header.run);
        if (names == nullptr) return;
        names->heard = context.now.wall;
        if (const auto* entries = std::get_if<core::Dictionary>(&body)) learn(header, *entries);
        if (const auto* life = std::get_if<core::Lifecycle>(&body); life && !life->job.empty()) {
          names->job = life->job;
        }
        if (header.kind == core::FrameKind::scalar) note(header, frame);
      });
  return std::nullopt;
}

ScalarsStage::Names* ScalarsStage::names_of(const core::RunUid& run) {
  const auto found = runs_.find(run);
  if (found != runs_.end()) return &found->second;
  if (runs_.size() >= kMostScalarRuns) {
    const auto oldest = std::min_element(
        runs_.begin(), runs_.end(),
        [](const auto& a, const auto& b) { return a.second.heard < b.second.heard; });
    runs_.erase(oldest);
  }
  return &runs_[run];
}

void ScalarsStage::learn(const core::FrameHeader& header, const core::Dictionary& entries) {
  Names& names = runs_.at(header.run);
  for (const core::NamedEntry& entry : entries) {
    if (!entry.attrs.job.empty()) names.job = entry.attrs.job;
    if (entry.type == core::DictionaryType::worker && names.workers.size() < kMostScalarWorkers) {
      names.workers[entry.hash] = entry.name;
    }
    if (entry.type == core::DictionaryType::scalar && names.scalars.size() < kMostScalarNames &&
        scalars_.wants(entry.name)) {
      names.scalars[entry.hash] = entry.name;
    }
  }
  if (names.job.empty()) names.job = job_of_(header.run);
}

void ScalarsStage::note(const core::FrameHeader& header, const core::FrameView& frame) {
  Names& names = runs_.at(header.run);
  if (names.scalars.empty()) return;
  if (names.job.empty()) names.job = job_of_(header.run);
  const auto worker = names.workers.find(header.worker);
  for (std::size_t row = 0; row < frame.rows(); ++row) {
    const core::ScalarRow scalar = frame.scalar(row);
    const auto name = names.scalars.find(scalar.name);
    if (name == names.scalars.end()) continue;
    scalars_.note(
        {header.run, names.job,
         worker == names.workers.end() ? "worker_" + std::to_string(header.rank) : worker->second,
         header.rank, name->second, header.mode, scalar.value, scalar.step,
         core::wall_time(scalar.time)});
  }
}

std::optional<core::Duration> ScalarsStage::tick(const StageTick& /*tick*/) {
  const std::uint64_t refused = scalars_.refused();
  if (refused > told_refused_) refused_.add(static_cast<double>(refused - told_refused_));
  told_refused_ = refused;
  return std::nullopt;
}

StageOutput ScalarsStage::take(const Instant& /*now*/) { return {}; }

}  // namespace tocsin::app
