#include "app/stages/evidence.h"

#include <utility>

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
    : AfterwardsStage("evidence", options.topic_prefix, options.instance, options.cluster),
      config_(std::move(options.config)),
      copy_(std::move(copy)),
      log_(log),
      kept_(copies(telemetry, "kept")),
      failed_(copies(telemetry, "failed")),
      too_many_(copies(telemetry, "too_many")),
      too_old_(copies(telemetry, "too_old")),
      removed_(copies(telemetry, "removed")) {}

std::optional<core::Duration> EvidenceStage::wanted(const core::Issue& issue,
                                                    const core::RecordView& record,
                                                    const StageContext& context) {
  if (issue.status != core::IssueStatus::firing || issue.evidence.data_refs.empty()) {
    return std::nullopt;
  }
  if (config_.keep != "all" && !issue.caused_by.empty()) return std::nullopt;
  if (context.now.wall - core::wall_time(record.timestamp) > kOldestIssue) {
    too_old_.add();
    return std::nullopt;
  }
  if (!room_for(issue)) return std::nullopt;
  return context.now.steady;
}

// A storm of issues waits for as many copies as its runs may have, not for one each.
bool EvidenceStage::room_for(const core::Issue& issue) {
  const std::string path = evidence_directory(config_.dir, issue);
  std::size_t of_run = 0;
  for (const Waiting& one : waiting()) {
    if (one.event.run.uid != issue.run.uid || one.event.run.attempt != issue.run.attempt) continue;
    if (evidence_directory(config_.dir, one.event) == path) return false;
    ++of_run;
  }
  if (of_run < config_.per_run && waiting().size() < kMostWaiting) return true;
  too_many_.add();
  return false;
}

/// Whether a copy is to be made.
bool EvidenceStage::begin(const core::Issue& issue) {
  // Of an earlier report, or by us before a crash.
  if (is_kept(evidence_directory(config_.dir, issue))) return false;
  if (kept_of_run(config_.dir, issue) < config_.per_run) return true;
  too_many_.add();
  log_.info("evidence_not_kept", {{"run", core::to_text(issue.run.uid)},
                                  {"rule", issue.rule},
                                  {"reason", "evidence.per_run copies of this attempt"}});
  return false;
}

// A batch of records at a time. Nothing is said of what went well; `issues reproduce` finds it.
bool EvidenceStage::work(const core::Issue& issue, const Instant& /*now*/,
                         std::optional<core::RuleStatusEvent>& told) {
  if (copying_ == nullptr) {
    if (!begin(issue)) return true;
    auto begun = copy_(issue);
    if (!begun) {
      told = failed(issue, begun.error().message);
      return true;
    }
    copying_ = std::move(*begun);
  }
  const auto copy = copying_->go_on();
  if (copy && !*copy) return false;
  copying_.reset();
  if (!copy) {
    told = failed(issue, copy.error().message);
    return true;
  }
  kept_.add();
  log_.info("evidence_kept", {{"run", core::to_text(issue.run.uid)},
                              {"rule", issue.rule},
                              {"path", evidence_directory(config_.dir, issue)},
                              {"records", static_cast<std::int64_t>((*copy)->records)},
                              {"bytes", static_cast<std::int64_t>((*copy)->bytes)},
                              {"left_out", static_cast<std::int64_t>((*copy)->left_out)}});
  return true;
}

core::RuleStatusEvent EvidenceStage::failed(const core::Issue& issue, const std::string& why) {
  failed_.add();
  log_.error("evidence_failed", {{"run", core::to_text(issue.run.uid)},
                                 {"rule", issue.rule},
                                 {"path", evidence_directory(config_.dir, issue)},
                                 {"error", why}});
  core::RuleStatusEvent out;
  out.rule = out.rule_type = kEvidenceRule;
  out.run = issue.run;
  out.time = issue.time;
  out.status = core::RuleState::error;
  out.reason = "records of an issue of " + issue.rule + " are not kept: " + why;
  return out;
}

std::optional<core::Duration> EvidenceStage::tick(const StageTick& tick) {
  if (cleaned_ == core::Duration{} || tick.now.steady - cleaned_ >= kCleanEvery) {
    cleaned_ = tick.now.steady;
    const auto before = tick.now.wall - config_.keep_for;
    const std::size_t gone = remove_old_evidence(config_.dir, before, log_);
    remove_unfinished_evidence(config_.dir, tick.now.wall - kOldestIssue, log_);
    for (std::size_t i = 0; i < gone; ++i) removed_.add();
  }
  return AfterwardsStage::tick(tick);
}

}  // namespace tocsin::app
