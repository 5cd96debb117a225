#include "app/stages/evidence.h"

#include <utility>

#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

// At the very first start the topic holds the issues of a month, and telemetry three days.
constexpr core::Duration kOldestIssue = 24h;
constexpr core::Duration kCleanEvery = 1h;
// A status of its own beside those of rules: `tocsin status` says what could not be kept.
constexpr const char* kEvidenceRule = "evidence";

core::Counter& copies(core::Telemetry& telemetry, std::string_view result) {
  return telemetry.counter("tocsin_evidence_total",
                           "issues whose records are to be kept, by what became of the copy",
                           {{"result", result}});
}

}  // namespace

EvidenceStage::EvidenceStage(EvidenceOptions options, Copy copy, core::Log& log,
                             core::Telemetry& telemetry)
    : options_(std::move(options)),
      copy_(std::move(copy)),
      log_(log),
      kept_(copies(telemetry, "kept")),
      failed_(copies(telemetry, "failed")),
      too_many_(copies(telemetry, "too_many")),
      too_old_(copies(telemetry, "too_old")),
      removed_(copies(telemetry, "removed")) {
  wiring_.name = "evidence";
  wiring_.part = "rules";
  wiring_.group = options_.topic_prefix + "-evidence";
  wiring_.topics = {core::topic::kIssues};
  wiring_.transactional_id = options_.topic_prefix + "-evidence-" + options_.instance;
  wiring_.writer = "evidence";
  wiring_.commit_every = 1s;
  wiring_.fetch_wait = 100ms;  // what comes ends it at once
}

core::Status EvidenceStage::open(const Instant& /*now*/) {
  waiting_.clear();
  positions_.clear();
  return core::ok();
}

bool EvidenceStage::wanted(const core::Issue& issue) const {
  if (issue.status != core::IssueStatus::firing || issue.evidence.data_refs.empty()) return false;
  return options_.config.keep == "all" || issue.caused_by.empty();
}

std::optional<Refusal> EvidenceStage::handle(const core::RecordView& record,
                                             const StageContext& context) {
  const core::StreamPartition where = positions_.read(record);
  if (record.tombstone || record.header("ce_type") != ingest::event_type::kIssue) {
    return std::nullopt;
  }
  auto decoded = ingest::decode_event(record);
  if (!decoded) return Refusal{"bad_event", decoded.error().message};
  auto* issue = std::get_if<core::Issue>(&decoded->event);
  if (issue == nullptr || !wanted(*issue)) return std::nullopt;
  if (context.now.wall - core::wall_time(record.timestamp) > kOldestIssue) {
    too_old_.add();
    return std::nullopt;
  }
  if (room_for(*issue)) waiting_.push_back({where, record.offset, std::move(*issue)});
  return std::nullopt;
}

// A storm of issues waits for as many copies as its runs may have, not for one each.
bool EvidenceStage::room_for(const core::Issue& issue) {
  const std::string path = evidence_directory(options_.config.dir, issue);
  std::size_t of_run = 0;
  for (const Waiting& one : waiting_) {
    if (one.issue.run.uid != issue.run.uid || one.issue.run.attempt != issue.run.attempt) continue;
    if (evidence_directory(options_.config.dir, one.issue) == path) return false;
    ++of_run;
  }
  if (of_run < options_.config.per_run) return true;
  too_many_.add();
  return false;
}

// Nothing is said of what went well; `issues reproduce` finds it.
std::optional<core::RuleStatusEvent> EvidenceStage::keep(const core::Issue& issue) {
  const std::string path = evidence_directory(options_.config.dir, issue);
  if (is_kept(path)) return std::nullopt;  // of an earlier report, or by us before a crash
  const std::string run = core::to_text(issue.run.uid);
  if (kept_of_run(options_.config.dir, issue) >= options_.config.per_run) {
    too_many_.add();
    log_.info("evidence_not_kept", {{"run", run},
                                    {"rule", issue.rule},
                                    {"reason", "evidence.per_run copies of this attempt"}});
    return std::nullopt;
  }
  const auto copy = copy_(issue);
  if (copy) {
    kept_.add();
    log_.info("evidence_kept", {{"run", run},
                                {"rule", issue.rule},
                                {"path", path},
                                {"records", static_cast<std::int64_t>(copy->records)},
                                {"bytes", static_cast<std::int64_t>(copy->bytes)},
                                {"left_out", static_cast<std::int64_t>(copy->left_out)}});
    return std::nullopt;
  }
  failed_.add();
  log_.error("evidence_failed",
             {{"run", run}, {"rule", issue.rule}, {"path", path}, {"error", copy.error().message}});
  core::RuleStatusEvent out;
  out.rule = out.rule_type = kEvidenceRule;
  out.run = issue.run;
  out.time = issue.time;
  out.status = core::RuleState::error;
  out.reason = "records of an issue of " + issue.rule + " are not kept: " + copy.error().message;
  return out;
}

std::optional<core::Duration> EvidenceStage::tick(const StageTick& tick) {
  if (cleaned_ == core::Duration{} || tick.now.steady - cleaned_ >= kCleanEvery) {
    cleaned_ = tick.now.steady;
    const auto before = tick.now.wall - options_.config.keep_for;
    const std::size_t gone = remove_old_evidence(options_.config.dir, before, log_);
    for (std::size_t i = 0; i < gone; ++i) removed_.add();
  }
  if (waiting_.empty()) return std::nullopt;
  return tick.now.steady;
}

StageOutput EvidenceStage::take(const Instant& /*now*/) {
  StageOutput out;
  if (!waiting_.empty()) {
    const Waiting one = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto trouble = keep(one.issue)) {
      out.records.push_back(
          {one.where.partition, ingest::encode_rule_status(*trouble, options_.cluster)});
    }
  }
  // After a crash the issues are read again whose copy is not whole.
  out.positions = positions_.take(waiting_);
  return out;
}

void EvidenceStage::revoked(std::span<const core::StreamPartition> partitions) {
  for (const core::StreamPartition& gone : partitions) {
    std::erase_if(waiting_, [&](const Waiting& one) { return one.where == gone; });
  }
  positions_.forget(partitions);
}

}  // namespace tocsin::app
