#include "actions/metrics/pushed_metrics.h"

#include <algorithm>
#include <set>
#include <utility>

#include "actions/metrics/recorded_metrics.h"

namespace tocsin::actions {

using core::OutcomeClass;

namespace {

// A stop of the process waits for a round in progress.
constexpr std::chrono::milliseconds kLongestRound{5000};

std::shared_ptr<IssueMetrics> picture_for(const PushSettings& settings,
                                          const Environment& environment,
                                          const IntegrationName& name) {
  if (environment.issue_metrics != nullptr) {
    return environment.issue_metrics->picture(name.id, settings.series);
  }
  IssueMetrics::Options options = settings.series;
  options.labels.emplace_back("test");  // of a test message: its series are told apart
  return std::make_shared<IssueMetrics>(options);
}

}  // namespace

PushedMetrics::PushedMetrics(const PushSettings& settings, std::shared_ptr<const void> keeps,
                             std::unique_ptr<MetricSink> sink, const Environment& environment,
                             const IntegrationName& name, const CommonConfig& common)
    : keeps_(std::move(keeps)),
      integration_(name.id),
      labels_(settings.series.labels),
      interval_(settings.interval),
      round_budget_(std::min(
          kLongestRound, std::chrono::duration_cast<std::chrono::milliseconds>(common.timeout))),
      is_trial_(environment.issue_metrics == nullptr),
      clock_(*environment.clock),
      log_(*environment.log),
      rounds_failed_(environment.telemetry->counter("tocsin_router_metric_rounds_failed_total",
                                                    "periodic pushes of publish_metric that failed",
                                                    {{"integration", name.id}})),
      delivers_(environment.delivers),
      picture_(picture_for(settings, environment, name)),
      scalars_(settings.scalars.patterns.empty() ? nullptr : environment.scalars),
      sink_(std::move(sink)) {
  if (scalars_ != nullptr) scalars_->want(integration_, settings.scalars);
  if (delivers_ && !is_trial_) rounds_ = std::make_unique<PushRounds>([this] { turn(); });
}

PushedMetrics::~PushedMetrics() { rounds_.reset(); }

core::Result<std::string> PushedMetrics::render(const core::Notification& notification) const {
  return state_text(notification, labels_);
}

core::AttemptOutcome PushedMetrics::execute(const core::Notification& notification,
                                            std::uint32_t /*attempt*/,
                                            std::chrono::milliseconds budget) {
  core::AttemptOutcome out;
  if (notification.minimal) {
    // The full message was refused as bad. A state has no shorter form.
    out.outcome = OutcomeClass::bad_payload;
    out.code = "refused";
    out.detail = "the far side refused these series, and they are not sent a second time";
    return out;
  }
  const core::Duration end = clock_.monotonic() + budget;
  bool all_kept = true;
  std::set<std::string> keys;
  for (const auto& notified : notification.issues) {
    all_kept = picture_->apply(notified, clock_.now()) && all_kept;
    keys.insert(notified.issue_key);
  }
  const core::MutexLock lock(mutex_);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.monotonic());
  if (left.count() <= 0) {
    out.outcome = OutcomeClass::transient;
    out.code = "timeout";
    out.detail = "another push took the whole time of an attempt";
    return out;
  }
  if (sink_->takes_whole()) {
    out = push_all(left, false);
  } else {
    MetricPush push_now;
    push_now.now = next_moment();
    push_now.series = picture_->series(push_now.now, &keys);
    out = push(std::move(push_now), left);
  }
  if (out.outcome == OutcomeClass::delivered && is_trial_ && !notification.firing) {
    picture_->forget();
    out = push_all(left, false);
  }
  if (!all_kept) {
    out.detail += out.detail.empty() ? "" : "; ";
    out.detail += "over max_series: not all issues have a series";
  }
  return out;
}

void PushedMetrics::turn() {
  const bool delivers = delivers_ && delivers_();
  const core::MutexLock lock(mutex_);
  if (!delivers) {
    if (std::exchange(led_, false)) {
      picture_->forget();
      told_.clear();
    }
    return;
  }
  if (!std::exchange(led_, true)) due_ = clock_.monotonic();
  if (clock_.monotonic() < due_) return;
  due_ = clock_.monotonic() + interval_;
  note(push_all(round_budget_, true));
}

core::AttemptOutcome PushedMetrics::push_all(std::chrono::milliseconds budget, bool periodic) {
  MetricPush all;
  all.whole = true;
  all.periodic = periodic;
  all.now = next_moment();
  all.series = picture_->series(all.now);
  if (scalars_ != nullptr) {
    for (IssueSeries& one : scalars_->series(integration_, all.now)) {
      all.series.push_back(std::move(one));
    }
  }
  std::set<std::vector<std::pair<std::string, std::string>>> kept;
  for (const IssueSeries& series : all.series) kept.insert(series.labels);
  for (const auto& [labels, series] : told_) {
    if (!kept.contains(labels)) all.ended.push_back(series);
  }
  return push(std::move(all), budget);
}

core::AttemptOutcome PushedMetrics::push(MetricPush push, std::chrono::milliseconds budget) {
  if (push.series.empty() && push.ended.empty()) {
    core::AttemptOutcome nothing;
    nothing.code = "nothing to push";
    return nothing;
  }
  core::AttemptOutcome out = sink_->push(push, budget);
  if (out.outcome != OutcomeClass::delivered) return out;
  for (const IssueSeries& series : push.ended) told_.erase(series.labels);
  for (IssueSeries& series : push.series) {
    auto labels = series.labels;
    told_.insert_or_assign(std::move(labels), std::move(series));
  }
  return out;
}

// Far sides refuse a sample that is not newer than the one before it.
core::WallTime PushedMetrics::next_moment() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(clock_.now());
  newest_ = std::max<core::WallTime>(now, newest_ + std::chrono::milliseconds(1));
  return newest_;
}

void PushedMetrics::note(const core::AttemptOutcome& outcome) {
  const bool failed = outcome.outcome != OutcomeClass::delivered;
  if (failed) rounds_failed_.add(1);
  if (failed == std::exchange(failing_, failed)) return;
  if (failed) {
    log_.warn("metrics_push_failed", {{"integration", integration_},
                                      {"outcome", std::string(to_string(outcome.outcome))},
                                      {"code", outcome.code},
                                      {"detail", outcome.detail}});
  } else {
    log_.info("metrics_push_recovered", {{"integration", integration_}});
  }
}

}  // namespace tocsin::actions
