#include "bench/latency_watch.h"

#include <algorithm>
#include <iostream>
#include <variant>

namespace tocsin::bench {

using namespace std::chrono_literals;

LatencyWatch::LatencyWatch(ingest::Transport& transport, bool product)
    : transport_(transport), product_(product) {
  const auto reader = [this](const char* topic,
                             void (LatencyWatch::*handle)(const core::RecordView&)) {
    readers_.emplace_back([this, topic, handle](const std::stop_token& stop) {
      read(stop, topic,
           [this, handle](const core::RecordView& record) { (this->*handle)(record); });
    });
  };
  reader("issues", &LatencyWatch::on_issue);
  reader("router-outbox", &LatencyWatch::on_notification);
  reader("commands", &LatencyWatch::on_command);
}

/// As the hook's client thread reads: group-less, from the beginning, with a long poll.
void LatencyWatch::read(const std::stop_token& stop, const char* topic, const Handle& handle) {
  ingest::SourceOptions options;
  options.topics = {topic};
  options.start = ingest::Start::beginning;
  options.fetch_wait = 100ms;
  auto source = transport_.source(options);
  if (!source) {
    std::cerr << topic << ": " << source.error().message << "\n";
    return;
  }
  while (!stop.stop_requested()) (void)(*source)->poll(50ms, 256, handle);
}

void LatencyWatch::produced(const core::RunUid& run) {
  const std::lock_guard lock(mutex_);
  times_[run].produced = Steady::now();
}

void LatencyWatch::note(const core::RunUid& run, const char* stage) {
  const auto now = Steady::now();
  const std::lock_guard lock(mutex_);
  const auto at = times_.find(run);
  if (at == times_.end()) return;
  at->second.stage_ms.emplace(
      stage, std::chrono::duration<double, std::milli>(now - at->second.produced).count());
}

void LatencyWatch::note(const core::RunUid& run, const char* stage, double ms) {
  const std::lock_guard lock(mutex_);
  const auto at = times_.find(run);
  if (at != times_.end()) at->second.stage_ms.emplace(stage, ms);
}

void LatencyWatch::on_issue(const core::RecordView& record) {
  if (!product_) {
    if (const auto run = core::parse_run_uid(record.key.value_or(""))) note(*run, kIssue);
    return;
  }
  const auto decoded = ingest::decode_event(record);
  if (!decoded) return;
  const auto* issue = std::get_if<core::Issue>(&decoded->event);
  if (issue == nullptr || issue->status != core::IssueStatus::firing) return;
  note(issue->run.uid, kIssue);
  note(issue->run.uid, kEvaluated,
       std::chrono::duration<double, std::milli>(issue->evaluated_at - issue->measured_at).count());
  const std::lock_guard lock(mutex_);
  sizes_.issue = std::max(sizes_.issue, record.value.size());
}

void LatencyWatch::on_notification(const core::RecordView& record) {
  if (!product_) {
    if (const auto run = core::parse_run_uid(record.key.value_or(""))) note(*run, kNotification);
    return;
  }
  const auto decoded = ingest::decode_notification(record);
  if (!decoded) return;
  for (const auto& one : decoded->issues) note(one.issue.run.uid, kNotification);
  const std::lock_guard lock(mutex_);
  sizes_.notification = std::max(sizes_.notification, record.value.size());
}

void LatencyWatch::on_command(const core::RecordView& record) {
  if (!product_) {
    if (const auto run = core::parse_run_uid(record.key.value_or(""))) note(*run, kStop);
    return;
  }
  const auto command = ingest::decode_command(record);
  if (!command || command->action != "stop") return;
  note(command->run, kStop);
  const std::lock_guard lock(mutex_);
  sizes_.command = std::max(sizes_.command, record.value.size());
}

std::size_t LatencyWatch::wait(const std::string& stage, std::chrono::milliseconds longest) const {
  const auto end = Steady::now() + longest;
  for (;;) {
    std::size_t unseen = 0;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [run, times] : times_) unseen += times.stage_ms.contains(stage) ? 0 : 1;
    }
    if (unseen == 0 || Steady::now() >= end) return unseen;
    std::this_thread::sleep_for(5ms);
  }
}

std::map<std::string, std::vector<double>> LatencyWatch::take() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::vector<double>> all;
  for (const auto& [run, times] : times_) {
    for (const auto& [stage, ms] : times.stage_ms) all[stage].push_back(ms);
  }
  times_.clear();
  return all;
}

RecordSizes LatencyWatch::sizes() const {
  const std::lock_guard lock(mutex_);
  return sizes_;
}

}  // namespace tocsin::bench
