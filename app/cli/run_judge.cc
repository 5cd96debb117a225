#include "app/cli/run_judge.h"

#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "core/system_clock.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "rules/embedded/embedded.h"

namespace tocsin::app {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{200};
constexpr milliseconds kFinish{10'000};  // for what is left when the command has ended
constexpr std::size_t kJudgeBatch = 1024;
constexpr std::size_t kShown = 5;  // first signs of one verdict

const core::Clock& clock_of_process() {
  static const core::SystemClock kClock;
  return kClock;
}

// Those of the configuration, if it has any that can judge here; else the default ones.
core::Result<std::shared_ptr<embedded::LocalJudge>> judge_by(const std::string& config_file,
                                                             const std::string& prefix,
                                                             std::string& why) {
  std::vector<std::string> choices{std::string()};
  if (!config_file.empty()) choices.insert(choices.begin(), config_file);
  for (const std::string& text : choices) {
    auto rules = embedded::rules_by_text(text);
    if (!rules) {
      why = rules.error().message;
      continue;
    }
    embedded::LocalJudgeOptions options;
    options.rules = std::move(*rules);
    options.rules.topic_prefix = prefix;
    auto made = embedded::LocalJudge::create(std::move(options), clock_of_process());
    if (made) return made;
    why = made.error().message;
  }
  return core::invalid_argument(why);
}

bool is_there(const std::string& journal) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(journal) / "telemetry.db", ignored);
}

std::string plural(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

std::string verdict_sentence(const RunVerdict& verdict) {
  std::string out = "verdict on run " + core::to_text(verdict.run).substr(0, 8);
  if (!verdict.job.empty()) out += " (job " + core::visible(verdict.job) + ")";
  const std::string judged =
      plural(verdict.rules, "rule") + " judged " +
      plural(static_cast<std::size_t>(std::max<std::int64_t>(verdict.steps, 0)), "step");
  if (verdict.issues == 0) return out + ": no issue found; " + judged;
  out += ": " + plural(verdict.issues, "issue") + "; ";
  std::set<std::string> rules;
  std::size_t shown = 0;
  for (const core::Issue& issue : verdict.first_signs) {
    if (!rules.insert(issue.rule).second || shown == kShown) continue;
    out += shown++ == 0 ? "first sign: " : "; then: ";
    out += core::visible(embedded::issue_sentence(issue));
  }
  return out + " (" + judged + ")";
}

RunJudge::RunJudge(const hook::Settings& settings, Reported reported, Say say)
    : settings_(settings), reported_(std::move(reported)), say_(std::move(say)) {}

RunJudge::~RunJudge() {
  if (judge_ != nullptr) judge_->close();
}

std::unique_ptr<RunJudge> RunJudge::create(const hook::Settings& settings,
                                           const std::string& config_file, Reported reported,
                                           Say say, std::string& why) {
  std::unique_ptr<RunJudge> out(new RunJudge(settings, std::move(reported), std::move(say)));
  auto judge = judge_by(config_file, settings.topics.prefix, why);
  if (!judge) return nullptr;
  out->judge_ = std::move(*judge);
  out->was_there_ = is_there(settings.transport.journal);
  if (out->was_there_) {
    if (!out->open()) {
      why = "the journal " + settings.transport.journal + " cannot be read";
      return nullptr;
    }
    (void)out->source_->poll(milliseconds(0), 1,
                             [](const core::RecordView&) {});  // takes its place
  }
  return out;
}

// A journal that is not there yet is made by the first hook, and not by us.
bool RunJudge::open() {
  auto transport = ingest::Transport::open(settings_.transport, settings_.topics, log_, telemetry_);
  if (!transport) return false;
  ingest::SourceOptions options;
  options.topics = {core::topic::kTelemetry};
  options.start = was_there_ ? ingest::Start::end : ingest::Start::beginning;
  auto source = (*transport)->source(std::move(options));
  if (!source) return false;
  transport_ = std::move(*transport);
  source_ = std::move(*source);
  return true;
}

void RunJudge::start() {
  judge_->start();
  thread_ = std::jthread([this](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "tocsin-verdict");
    run(stop);
  });
}

void RunJudge::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (source_ == nullptr && (!is_there(settings_.transport.journal) || !open())) {
      (void)judge_->wait(told_, kPoll);  // for nothing, most likely
      continue;
    }
    (void)read(kPoll);
    tell();
  }
}

bool RunJudge::read(milliseconds timeout) {
  const auto read = source_->poll(timeout, kJudgeBatch, [this](const core::RecordView& record) {
    count_steps(record);
    const auto offered = [&] {
      return judge_->offer(record.key.value_or(""), record.text(), record.timestamp);
    };
    // Its queue is full: what is judged is worth more than how soon.
    for (int turn = 0; turn < 100 && !offered(); ++turn) (void)judge_->catch_up(kPoll);
  });
  return !read || (*read == 0 && source_->at_end());
}

void RunJudge::count_steps(const core::RecordView& record) {
  const auto decoded = ingest::decode_frame(record.value);
  if (!decoded) return;
  const core::FrameHeader& header = decoded.frame().header();
  if (header.kind != core::FrameKind::step_end || header.mode != core::Mode::train) return;
  std::int64_t& steps = steps_[header.run];
  steps = std::max(steps, header.step + 1);
}

// As they come, for whoever watches: those of processes that judge themselves are told there.
void RunJudge::tell() {
  const auto fresh = judge_->issues(told_);
  told_ += fresh.size();
  if (fresh.empty()) return;
  const LaunchReport report = reported_();
  for (const embedded::KeptIssue& kept : fresh) {
    const auto worker =
        std::find_if(report.workers.begin(), report.workers.end(),
                     [&](const ReportedWorker& one) { return one.run == kept.issue.run.uid; });
    if (kept.told && worker != report.workers.end() && !worker->judges)
      say_(core::visible(kept.text));
  }
}

std::vector<RunVerdict> RunJudge::finish() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  if (source_ == nullptr && is_there(settings_.transport.journal)) (void)open();
  const core::SystemClock clock;
  const core::Duration until = clock.monotonic() + kFinish;
  while (source_ != nullptr && !read(milliseconds(0)) && clock.monotonic() < until) {
  }
  const auto left = std::chrono::duration_cast<milliseconds>(until - clock.monotonic());
  (void)judge_->finish(std::max(left, kPoll));
  tell();
  return verdicts();
}

std::vector<RunVerdict> RunJudge::verdicts() const {
  std::vector<RunVerdict> out;
  const auto kept = judge_->issues(0);
  for (const ReportedWorker& worker : reported_().workers) {
    if (std::any_of(out.begin(), out.end(),
                    [&](const RunVerdict& one) { return one.run == worker.run; })) {
      continue;
    }
    RunVerdict verdict;
    verdict.run = worker.run;
    verdict.rules = judge_->counts().rules;
    if (const auto steps = steps_.find(worker.run); steps != steps_.end())
      verdict.steps = steps->second;
    for (const embedded::KeptIssue& one : kept) {
      if (one.issue.run.uid != worker.run || one.issue.shadow ||
          one.issue.status != core::IssueStatus::firing) {
        continue;
      }
      verdict.job = one.issue.run.job;
      ++verdict.issues;
      if (one.issue.caused_by.empty()) verdict.first_signs.push_back(one.issue);
    }
    out.push_back(std::move(verdict));
  }
  return out;
}

}  // namespace tocsin::app
