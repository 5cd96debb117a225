#include "actions/issue_metrics.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>

#include "actions/prometheus_label.h"

namespace tocsin::actions {

using core::WallTime;

namespace {

struct Known {
  std::uint64_t episode = 0;
  bool firing = false;
  WallTime transition{};
  core::Labels labels;
  std::string series;  // the allow-listed labels as they are printed
};

struct Sum {
  bool active = false;
  WallTime transition{};
  std::uint64_t episodes = 0;
};

std::string label_value(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out;
}

std::string series_of(const core::Labels& labels, const std::vector<std::string>& allowed) {
  std::string out;
  for (const std::string& name : allowed) {
    if (!labels.has(name)) continue;
    out += (out.empty() ? "" : ",") + prometheus_label(name) + "=\"" +
           label_value(labels.get(name)) + "\"";
  }
  return "{" + out + "}";
}

std::string seconds(WallTime time) {
  std::array<char, 48> out{};
  std::snprintf(out.data(), out.size(), "%.3f", static_cast<double>(core::nanoseconds(time)) / 1e9);
  return out.data();
}

}  // namespace

struct IssueMetrics::State {
  std::mutex mutex;  // guards the rest
  Options options;
  std::map<std::string, Known> issues;            // by issue key
  std::map<std::string, std::size_t> per_series;  // issues in each series
  std::uint64_t refused = 0;

  void count(const std::string& series) { ++per_series[series]; }
  void uncount(const std::string& series) {
    const auto found = per_series.find(series);
    if (found != per_series.end() && --found->second == 0) per_series.erase(found);
  }
};

IssueMetrics::IssueMetrics() : IssueMetrics(Options{}) {}
IssueMetrics::IssueMetrics(Options options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}
IssueMetrics::~IssueMetrics() = default;

void IssueMetrics::widen(const Options& options) {
  const std::lock_guard lock(state_->mutex);
  Options& own = state_->options;
  for (const std::string& name : options.labels) {
    if (std::find(own.labels.begin(), own.labels.end(), name) == own.labels.end()) {
      own.labels.push_back(name);
    }
  }
  own.max_series = std::max(own.max_series, options.max_series);
  own.linger = std::max(own.linger, options.linger);
  state_->per_series.clear();
  for (auto& [key, known] : state_->issues) {
    known.series = series_of(known.labels, own.labels);
    state_->count(known.series);
  }
}

bool IssueMetrics::apply(const core::NotifiedIssue& issue) {
  const std::lock_guard lock(state_->mutex);
  const bool firing = issue.issue.status == core::IssueStatus::firing;
  const auto found = state_->issues.find(issue.issue_key);
  if (found != state_->issues.end() && issue.episode < found->second.episode) return true;
  if (found != state_->issues.end() && issue.episode == found->second.episode && firing &&
      !found->second.firing) {
    return true;  // an episode that is over does not begin again
  }
  const std::string series = series_of(issue.issue.labels, state_->options.labels);
  const bool fresh = !state_->per_series.contains(series);
  if (fresh && state_->per_series.size() >= state_->options.max_series) {
    ++state_->refused;
    return false;
  }
  Known& known = state_->issues[issue.issue_key];
  const bool same = known.episode == issue.episode && known.firing == firing;
  if (!known.series.empty()) state_->uncount(known.series);
  known.series = series;
  known.labels = issue.issue.labels;
  state_->count(series);
  if (same) return true;  // a repetition: the transition keeps its time
  known.episode = issue.episode;
  known.firing = firing;
  known.transition =
      firing ? issue.issue.starts_at : issue.issue.ends_at.value_or(issue.issue.time);
  return true;
}

std::string IssueMetrics::render(WallTime now) {
  const std::lock_guard lock(state_->mutex);
  std::map<std::string, Sum> series;
  for (auto it = state_->issues.begin(); it != state_->issues.end();) {
    const Known& known = it->second;
    if (!known.firing && now - known.transition > state_->options.linger) {
      state_->uncount(known.series);
      it = state_->issues.erase(it);
      continue;
    }
    Sum& sum = series[known.series];
    sum.active = sum.active || known.firing;
    sum.transition = std::max(sum.transition, known.transition);
    sum.episodes += known.episode;
    ++it;
  }
  std::string active =
      "# HELP tocsin_issue_active 1 while an issue is firing, 0 after its resolve\n"
      "# TYPE tocsin_issue_active gauge\n";
  std::string transition =
      "# HELP tocsin_issue_last_transition_timestamp_seconds when it last began or ended\n"
      "# TYPE tocsin_issue_last_transition_timestamp_seconds gauge\n";
  std::string episodes =
      "# HELP tocsin_issue_episodes_total how often it has begun\n"
      "# TYPE tocsin_issue_episodes_total counter\n";
  for (const auto& [labels, sum] : series) {
    active += "tocsin_issue_active" + labels + (sum.active ? " 1\n" : " 0\n");
    transition += "tocsin_issue_last_transition_timestamp_seconds" + labels + " " +
                  seconds(sum.transition) + "\n";
    episodes += "tocsin_issue_episodes_total" + labels + " " + std::to_string(sum.episodes) + "\n";
  }
  return active + transition + episodes +
         "# HELP tocsin_issue_series_refused_total reports not kept because of max_series\n"
         "# TYPE tocsin_issue_series_refused_total counter\n"
         "tocsin_issue_series_refused_total " +
         std::to_string(state_->refused) + "\n";
}

}  // namespace tocsin::actions
