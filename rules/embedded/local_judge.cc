#include "rules/embedded/local_judge.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "core/episode.h"
#include "core/signals_blocked.h"
#include "core/text.h"
#include "core/topics.h"

namespace tocsin::embedded {
namespace {

using std::chrono::milliseconds;

constexpr auto kTick = std::chrono::seconds(1);
constexpr std::size_t kBatch = 256;  // records between two looks at what was decided
constexpr std::uint64_t kRecordBytes = 128;
constexpr const char* kSource = "/in-process/engine";
constexpr const char* kStop = "stop";
constexpr auto kStopExpires = std::chrono::minutes(10);

// Of the calling thread.
core::Duration processor_time() {
  timespec used{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

core::Result<StopChoice> StopChoice::parse(const std::string& text,
                                           const rules::RulesConfig& rules) {
  StopChoice out;
  if (text.empty()) return out;
  if (const auto severity = core::severity_from(text)) {
    out.from_ = severity;
    return out;
  }
  std::vector<std::string> known{"info", "warning", "error", "critical"};
  for (const auto& rule : rules.rules) known.push_back(rule.name);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, comma - at);
    at = comma + 1;
    if (name.empty()) continue;
    if (std::find(known.begin() + 4, known.end(), name) == known.end()) {
      const std::string near = core::nearest(name, known);
      return core::invalid_argument("stop: no severity, and no rule that judges here: \"" + name +
                                    "\"" +
                                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    out.rules_.insert(name);
  }
  return out;
}

bool StopChoice::asks(const core::Issue& issue) const {
  if (issue.status != core::IssueStatus::firing || issue.shadow) return false;
  return rules_.contains(issue.rule) || (from_ && issue.severity >= *from_);
}

std::string without_receivers(const rules::RulesConfig& rules) {
  std::string out;
  for (const rules::RuleSettings& rule : rules.rules) {
    std::string receivers;
    for (const std::string& one : rule.actions) receivers += (receivers.empty() ? "" : ", ") + one;
    if (receivers.empty()) continue;
    out += (out.empty() ? "" : ", ") + rule.name + " (" + receivers + ")";
  }
  return out;
}

std::string issue_sentence(const core::Issue& issue) {
  std::string out = issue.status == core::IssueStatus::firing
                        ? std::string(core::to_string(issue.severity))
                        : std::string("over:");
  out += " " + issue.rule;
  if (const auto step = core::step_of_news(issue)) out += " at step " + std::to_string(*step);
  if (const std::string& news = core::news_of(issue); !news.empty()) out += ": " + news;
  return out;
}

LocalJudge::LocalJudge(LocalJudgeOptions options, const core::Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      topic_(ingest::full_topic_name(options_.rules.topic_prefix, core::topic::kTelemetry)) {
  counts_.rules = options_.rules.rules.rules.size();
  counts_.without_receivers = without_receivers(options_.rules.rules);
}

core::Result<std::shared_ptr<LocalJudge>> LocalJudge::create(LocalJudgeOptions options,
                                                             const core::Clock& clock) {
  rules::EngineOptions engine{options.rules.cluster, {}, options.rules.engine};
  engine.labels.assign(options.rules.labels.begin(), options.rules.labels.end());
  auto made = rules::Engine::create(options.rules.rules, engine);
  if (!made) return made.error();
  std::shared_ptr<LocalJudge> out(new LocalJudge(std::move(options), clock));
  out->engine_ = std::move(*made);
  return out;
}

void LocalJudge::start() {
  const core::SignalsBlocked blocked;
  std::thread([self = shared_from_this()] {
    pthread_setname_np(pthread_self(), "tocsin-judge");
    self->run();
  }).detach();
}

bool LocalJudge::offer(std::string_view key, std::string_view value, std::int64_t time) {
  const std::uint64_t bytes = key.size() + value.size() + kRecordBytes;
  {
    const core::MutexLock lock(mutex_);
    if (finishing_ || closed_) return false;
    if (bytes_ + bytes > options_.queue_bytes) {
      ++counts_.dropped;
      return false;
    }
    bytes_ += bytes;
    ++offered_;
    queue_.push_back({std::string(key), std::string(value), time});
    if (queue_.size() > 1) return true;  // it is at work, or was woken
  }
  changed_.notify_all();
  return true;
}

bool LocalJudge::catch_up(milliseconds timeout) {
  const core::MutexLock lock(mutex_);
  const std::uint64_t until = offered_;
  return changed_.wait_for(
      mutex_, timeout, [&]() REQUIRES(mutex_) { return judged_ >= until || closed_ || finished_; });
}

bool LocalJudge::finish(milliseconds timeout) {
  {
    // A command that is being handed over ends first; there is no other after it.
    const core::MutexLock lock(command_mutex_);
    commands_ = false;
  }
  const core::MutexLock lock(mutex_);
  finishing_ = true;
  changed_.notify_all();
  return changed_.wait_for(mutex_, timeout, [&]() REQUIRES(mutex_) { return finished_; });
}

void LocalJudge::close() {
  {
    const core::MutexLock lock(command_mutex_);
    commands_ = false;
  }
  const core::MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::vector<KeptIssue> LocalJudge::issues(std::size_t since) const {
  const core::MutexLock lock(mutex_);
  if (since >= issues_.size()) return {};
  return {issues_.begin() + static_cast<std::ptrdiff_t>(since), issues_.end()};
}

bool LocalJudge::wait(std::size_t seen, milliseconds timeout) {
  const core::MutexLock lock(mutex_);
  changed_.wait_for(mutex_, timeout, [&]() REQUIRES(mutex_) {
    return issues_.size() > seen || finished_ || closed_ || awake_;
  });
  return issues_.size() > seen;
}

void LocalJudge::wake() {
  const core::MutexLock lock(mutex_);
  awake_ = true;
  changed_.notify_all();
}

JudgeCounts LocalJudge::counts() const {
  const core::MutexLock lock(mutex_);
  JudgeCounts out = counts_;
  out.cost = cost();
  out.waiting = queue_.size();
  out.issues = issues_.size();
  return out;
}

void LocalJudge::run() {
  try {
    while (turn()) {
    }
  } catch (const std::exception& error) {
    const core::MutexLock lock(mutex_);
    counts_.error = std::string("the rules have ended: ") + error.what();
    finishing_ = finished_ = true;  // takes nothing any more
    queue_.clear();
  }
  changed_.notify_all();
}

// One look at the queue; false: through.
bool LocalJudge::turn() {
  std::deque<Queued> taken;
  bool finishing = false;
  {
    const core::MutexLock lock(mutex_);
    changed_.wait_for(mutex_, kTick,
                      [&]() REQUIRES(mutex_) { return !queue_.empty() || finishing_ || closed_; });
    if (closed_) return false;
    finishing = finishing_ && queue_.size() <= kBatch;
    while (!queue_.empty() && taken.size() < kBatch) {
      bytes_ -= queue_.front().key.size() + queue_.front().value.size() + kRecordBytes;
      taken.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
  for (const Queued& record : taken) judge(record);
  engine_->tick(clock_.now(), [](std::int32_t) { return true; });
  if (finishing) engine_->end_of_input();
  collect();
  cost_ = processor_time().count();
  {
    const core::MutexLock lock(mutex_);
    judged_ += taken.size();
    counts_.records = judged_;
    finished_ = finishing;
  }
  if (!taken.empty() || finishing) changed_.notify_all();
  return !finishing;
}

void LocalJudge::judge(const Queued& queued) {
  core::RecordView record;
  record.topic = core::topic::kTelemetry;
  record.stream = core::topic::kTelemetry;
  record.offset = offset_++;
  record.timestamp = queued.time;
  record.key = queued.key;
  record.value = std::as_bytes(std::span(queued.value));
  const core::WallTime time = core::wall_time(queued.time);
  const rules::RecordRef ref{topic_, record.stream, 0, record.offset, time};
  std::string refusal;
  try {
    const auto failure = ingest::decode_telemetry(
        record, json_, [&](const core::FrameView& frame, const core::FrameBody& body) {
          engine_->on_frame(frame, body, ref, clock_.now());
        });
    if (failure) refusal = std::string(ingest::to_string(failure->code)) + ": " + failure->detail;
  } catch (const std::exception& error) {
    refusal = std::string("handler_failed: ") + error.what();
  }
  if (refusal.empty()) return;
  engine_->skip(ref);
  const core::MutexLock lock(mutex_);
  ++counts_.refused;
  counts_.error = std::move(refusal);
}

void LocalJudge::collect() {
  for (const std::int32_t partition : engine_->pending()) {
    for (auto& event : engine_->take(partition).events) note(event);
  }
}

// What followed from another issue is no news, and neither is that an issue ended with its run.
bool LocalJudge::worth_telling(const core::Issue& issue) {
  const std::string key = core::issue_key(issue.labels);
  if (issue.status != core::IssueStatus::firing) {
    return told_.erase(key) > 0 && issue.resolution != core::Resolution::job_ended;
  }
  if (issue.shadow || !issue.caused_by.empty()) return false;
  told_.insert(key);
  return true;
}

void LocalJudge::note(rules::Event& event) {
  if (auto* issue = std::get_if<core::Issue>(&event)) {
    consider_stop(*issue);
    const core::MutexLock lock(mutex_);
    if (issues_.size() == kMostIssues) {
      ++counts_.issues_left_out;
      return;
    }
    KeptIssue kept;
    kept.text = issue_sentence(*issue);
    kept.told = worth_telling(*issue);
    kept.issue = std::move(*issue);
    issues_.push_back(std::move(kept));
  } else if (auto* job = std::get_if<core::JobEvent>(&event)) {
    jobs_[{job->run.uid, job->run.attempt}] = std::move(*job);
  } else if (const auto* command = std::get_if<core::Command>(&event)) {
    send(ingest::encode_command(*command, kSource));
  }
}

// Of several ranks one would leave alone, each by what it saw itself, and the others would wait for
// it for ever: that takes the program, which names one step for all.
void LocalJudge::consider_stop(const core::Issue& issue) {
  if (!options_.stop.asks(issue)) return;
  const std::pair key(issue.run.uid, issue.run.attempt);
  const auto job = jobs_.find(key);
  if (job == jobs_.end() || stopped_.contains(key)) return;
  if (job->second.world_size > 1) {
    const core::MutexLock lock(mutex_);
    counts_.error = "a run of several ranks is not stopped from within: that takes tocsin up";
    return;
  }
  stopped_.insert(key);
  core::Command command;
  command.command_id = core::command_id(issue.run.uid, issue.run.attempt, kStop);
  command.action = kStop;
  command.run = issue.run.uid;
  command.attempt = issue.run.attempt;
  command.revision = issue.run.attempt;
  command.launch = job->second.launch;
  command.issued_at = clock_.now();
  command.expires_at = command.issued_at + kStopExpires;
  command.requested_by = "in-process";
  command.reason = {issue.rule, core::issue_key(issue.labels), 0, issue.event_id, issue.summary};
  command.args = core::ValueMap{{"mode", "checkpoint_then_stop"}};
  send(ingest::encode_command(command, kSource));
  const core::MutexLock lock(mutex_);
  ++counts_.stops;
}

void LocalJudge::send(const core::OutRecord& record) {
  const core::MutexLock lock(command_mutex_);
  if (commands_ && options_.command) options_.command(record);
}

}  // namespace tocsin::embedded
