#include "app/health/health_watch.h"

#include <filesystem>
#include <utility>

#include "app/health/config_trouble.h"
#include "app/process/descriptor_limit.h"
#include "core/topic_settings.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::TopicDifference;

constexpr core::Duration kTopicsEvery = 10s;
constexpr std::uint64_t kSpareDescriptors = 16;

// Of those that keep nothing from happening people are told, and the process is ready.
bool blocks(const Trouble& one) {
  return one.which == ProcessIssue::stage_stands_still ||
         one.which == ProcessIssue::topic_missing ||
         one.which == ProcessIssue::descriptors_exhausted;
}

}  // namespace

HealthWatch::HealthWatch(HealthPorts ports, ProcessTrouble trouble)
    : ports_(std::move(ports)),
      trouble_(std::move(trouble)),
      standing_(ports_.telemetry->gauge("tocsin_process_troubles",
                                        "what is wrong with this process now, as its own issues "
                                        "say")) {}
HealthWatch::~HealthWatch() = default;

void HealthWatch::look() {
  const core::Duration steady = ports_.clock->monotonic();
  if (steady >= topics_due_) {
    topics_due_ = steady + kTopicsEvery;
    look_at_topics();
    look_at_descriptors();
  }
  const std::vector<Trouble> now = standing();
  standing_.set(static_cast<double>(now.size()));
  std::string lines;
  for (const Trouble& one : now) {
    if (blocks(one)) lines += one.what + "\n";
  }
  {
    const core::MutexLock lock(mutex_);
    blocking_ = std::move(lines);
  }
  publish(trouble_.update(now, ports_.clock->now()));
}

std::string HealthWatch::blocking() const {
  const core::MutexLock lock(mutex_);
  return blocking_;
}

std::vector<Trouble> HealthWatch::standing() {
  std::vector<Trouble> out = ports_.stages();
  for (const auto* list : {&missing_, &unsafe_, &descriptors_}) {
    out.insert(out.end(), list->begin(), list->end());
  }
  const std::string refused = ConfigTrouble::of_this_process().why();
  if (!refused.empty()) {
    out.push_back(
        {ProcessIssue::configuration_refused,
         {},
         "The configuration file is rejected, and the previous one stays in effect: " + refused});
  }
  return out;
}

// A broker that does not answer shows nothing: what was seen last stands, and the stages say it.
void HealthWatch::look_at_topics() {
  auto states = ports_.transport->topic_states();
  if (!states) return;
  missing_.clear();
  for (const ingest::TopicState& state : *states) {
    if (state.partitions) continue;
    missing_.push_back({ProcessIssue::topic_missing, state.wanted.full_name,
                        "The topic " + state.wanted.full_name + " does not exist."});
  }
  // What is dangerous is looked at again until somebody has mended it.
  if (!compared_ || !unsafe_.empty()) compare_topics();
}

void HealthWatch::compare_topics() {
  auto* settings = dynamic_cast<core::TopicSettings*>(ports_.transport);
  if (settings == nullptr) {  // a journal: nobody else makes its topics
    compared_ = true;
    return;
  }
  const auto comparisons = settings->compare();
  if (!comparisons) {
    ports_.log->warn("topic_settings_not_read", {{"error", comparisons.error().message}});
    compared_ = !comparisons.error().retryable();  // not ours to see
    return;
  }
  const bool first = !std::exchange(compared_, true);
  unsafe_.clear();
  for (const core::TopicComparison& comparison : *comparisons) {
    std::string dangers;
    for (const TopicDifference& one : comparison.differences) {
      if (one.grade == TopicDifference::Grade::note) continue;
      const bool danger = one.grade == TopicDifference::Grade::danger;
      const std::initializer_list<core::Field> fields = {{"topic", comparison.topic},
                                                         {"setting", one.key},
                                                         {"is", one.found},
                                                         {"wanted", one.wanted},
                                                         {"cost", one.cost}};
      if (first) {
        ports_.log->write(danger ? core::Level::error : core::Level::warn, "topic_differs", fields);
      }
      if (!danger) continue;
      dangers += (dangers.empty() ? "" : "; ") + one.key + " is " + one.found + ", wanted " +
                 one.wanted + ": " + one.cost;
    }
    if (dangers.empty()) continue;
    unsafe_.push_back(
        {ProcessIssue::topic_unsafe, comparison.topic,
         "The topic " + comparison.topic + " loses what it must keep: " + dangers + "."});
  }
}

void HealthWatch::look_at_descriptors() {
  descriptors_.clear();
  std::error_code error;
  std::uint64_t open = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++open;
  }
  const std::uint64_t limit = descriptor_limit();
  // One that cannot even be opened for looking is the last one.
  const bool none = error == std::errc::too_many_files_open;
  if (!none && open + kSpareDescriptors <= limit) return;
  descriptors_.push_back({ProcessIssue::descriptors_exhausted,
                          {},
                          "The process has " + (none ? "all" : std::to_string(open)) + " of its " +
                              std::to_string(limit) + " file descriptors open."});
}

void HealthWatch::publish(const std::vector<core::Issue>& issues) {
  if (issues.empty()) return;
  const auto status = try_publish(issues);
  if (!status) {
    trouble_.lost();
    publisher_.reset();
    if (!std::exchange(unpublished_, true)) {
      ports_.log->warn("own_issue_not_published", {{"error", status.error().message}});
    }
    return;
  }
  unpublished_ = false;
  for (const core::Issue& one : issues) {
    const bool fires = one.status == core::IssueStatus::firing;
    ports_.log->write(fires ? core::Level::error : core::Level::info,
                      fires ? "process_trouble" : "process_trouble_over",
                      {{"rule", one.rule}, {"summary", one.summary}, {"id", one.event_id}});
  }
}

core::Status HealthWatch::try_publish(const std::vector<core::Issue>& issues) {
  if (!publisher_) {
    ingest::PublisherOptions options;
    options.writer = "health";
    options.durable = true;
    auto made = ports_.transport->publisher(std::move(options));
    if (!made) return made.error();
    publisher_ = std::move(*made);
  }
  for (const core::Issue& one : issues) {
    if (auto status = publisher_->publish(ingest::encode_issue(one)); !status) return status;
  }
  return publisher_->flush(2s);
}

}  // namespace tocsin::app
