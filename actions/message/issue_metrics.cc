#include "actions/message/issue_metrics.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "actions/message/prometheus_label.h"
#include "actions/message/series_text.h"
#include "core/identity.h"
#include "core/mutex.h"
#include "core/text.h"

namespace tocsin::actions {

using core::WallTime;

namespace {

constexpr std::size_t kMaxValue = 4096;
constexpr std::size_t kMaxEarlyEnds = 10'000;

struct Known {
  std::uint64_t episode = 0;
  bool firing = false;
  WallTime transition{};
  WallTime ended{};  // since when it lingers: when we heard of its end
  core::Labels labels;
  std::string series;  // the allow-listed labels as they are printed
};

struct Sum {
  const core::Labels* labels = nullptr;  // of one of its issues
  bool active = false;
  WallTime transition{};
  std::uint64_t episodes = 0;
};

/// A label of the configuration, and its name as Prometheus takes it.
struct Allowed {
  std::string name;
  std::string printed;
};

/// Parsers take some control characters for the end of a line or text.
void add_visible(std::string& out, char c) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c != '\n' && (byte < 0x20 || byte == 0x7F)) {
    out += "\\x";
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 0xFU];
  } else {
    out += c;
  }
}

/// UTF-8 of a bounded length, whatever the value holds.
std::string label_value(const std::string& value) {
  std::string out;
  std::string_view rest = value;
  if (rest.size() > kMaxValue) rest = core::cut_utf8(rest, kMaxValue);
  while (!rest.empty()) {
    const std::size_t valid = core::first_invalid_utf8(rest).value_or(rest.size());
    for (const char c : rest.substr(0, valid)) add_visible(out, c);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    out += "\xEF\xBF\xBD";  // U+FFFD
    rest.remove_prefix(1);
  }
  if (value.size() > kMaxValue) out += core::make_id("~", {value});
  return out;
}

std::string series_of(const core::Labels& labels, const std::vector<Allowed>& allowed) {
  std::string out;
  for (const Allowed& one : allowed) {
    if (labels.get(one.name).empty()) continue;  // an empty one is none (Prometheus data model)
    out += (out.empty() ? "" : ",") + one.printed + "=" +
           quoted_label(label_value(labels.get(one.name)));
  }
  return "{" + out + "}";
}

std::string seconds(WallTime time) {
  std::array<char, 48> out{};
  std::snprintf(out.data(), out.size(), "%.3f", static_cast<double>(core::nanoseconds(time)) / 1e9);
  return out.data();
}

}  // namespace

std::string metric_label_problem(const std::vector<std::string>& names) {
  std::map<std::string, std::string> printed;
  for (const std::string& name : names) {
    const std::string fit = prometheus_label(name);
    if (fit.empty()) return "a label has a name";
    if (fit.starts_with("__")) {
      return "\"" + name + "\" would be \"" + fit + "\", which Prometheus keeps for itself";
    }
    const auto [other, fresh] = printed.emplace(fit, name);
    if (!fresh) {
      return "\"" + other->second + "\" and \"" + name + "\" would both be \"" + fit +
             "\", and Prometheus refuses a series with two of them";
    }
  }
  return {};
}

struct IssueMetrics::State {
  core::Mutex mutex;
  Options options GUARDED_BY(mutex);
  bool configured GUARDED_BY(mutex) = false;  // widen() was called
  // Of options.labels, those that can be printed.
  std::vector<Allowed> allowed GUARDED_BY(mutex);
  std::map<std::string, Known> issues GUARDED_BY(mutex);            // by issue key
  std::map<std::string, std::size_t> per_series GUARDED_BY(mutex);  // issues in each series
  // Episodes that ended before they were told.
  std::map<std::string, std::uint64_t> ends GUARDED_BY(mutex);
  std::deque<std::string> ends_order GUARDED_BY(mutex);
  std::uint64_t refused GUARDED_BY(mutex) = 0;
  std::map<std::string, std::shared_ptr<IssueMetrics>> pictures
      GUARDED_BY(mutex);  // by integration

  auto erase(std::map<std::string, Known>::iterator at) REQUIRES(mutex) {
    uncount(at->second.series);
    return issues.erase(at);
  }
  /// Sums by series, after what lingered long enough has gone.
  std::map<std::string, Sum> sums(WallTime now) REQUIRES(mutex) {
    std::map<std::string, Sum> out;
    for (auto it = issues.begin(); it != issues.end();) {
      const Known& known = it->second;
      if (!known.firing && now - known.ended > options.linger) {
        it = erase(it);
        continue;
      }
      Sum& sum = out[known.series];
      sum.labels = &known.labels;
      sum.active = sum.active || known.firing;
      sum.transition = std::max(sum.transition, known.transition);
      sum.episodes += known.episode;
      ++it;
    }
    return out;
  }
  [[nodiscard]] IssueSeries data_of(const Sum& sum) const REQUIRES(mutex) {
    IssueSeries out{{}, sum.active, sum.transition, sum.episodes};
    for (const Allowed& one : allowed) {
      if (sum.labels->get(one.name).empty()) continue;
      out.labels.emplace_back(one.printed, label_value(sum.labels->get(one.name)));
    }
    std::sort(out.labels.begin(), out.labels.end());
    return out;
  }
  void allow(const std::string& name) REQUIRES(mutex) {
    const std::string printed = prometheus_label(name);
    const bool taken = std::any_of(allowed.begin(), allowed.end(),
                                   [&](const Allowed& one) { return one.printed == printed; });
    // One name twice, and Prometheus would refuse all that is served.
    if (!taken && !printed.empty() && !printed.starts_with("__"))
      allowed.push_back({name, printed});
  }
  /// After the labels have changed.
  void name_series() REQUIRES(mutex) {
    per_series.clear();
    for (auto& [key, known] : issues) {
      known.series = series_of(known.labels, allowed);
      count(known.series);
    }
  }
  void count(const std::string& series) REQUIRES(mutex) { ++per_series[series]; }
  void uncount(const std::string& series) REQUIRES(mutex) {
    const auto found = per_series.find(series);
    if (found != per_series.end() && --found->second == 0) per_series.erase(found);
  }
  /// Room for one more series; what only lingers gives way to what fires.
  bool make_room() REQUIRES(mutex) {
    if (per_series.size() < options.max_series) return true;
    std::map<std::string, WallTime> lingering;  // series none of whose issues fires → newest end
    for (const auto& [key, known] : issues) {
      auto& ended = lingering[known.series];
      ended = std::max(ended, known.firing ? WallTime::max() : known.ended);
    }
    const auto oldest = std::min_element(lingering.begin(), lingering.end(),
                                         [](auto& a, auto& b) { return a.second < b.second; });
    if (oldest == lingering.end() || oldest->second == WallTime::max()) return false;
    const std::string series = oldest->first;
    for (auto at = issues.begin(); at != issues.end();) {
      at = at->second.series == series ? erase(at) : std::next(at);
    }
    return per_series.size() < options.max_series;
  }
};

IssueMetrics::IssueMetrics() : IssueMetrics(Options{}) {}
IssueMetrics::IssueMetrics(Options options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  for (const std::string& name : state_->options.labels) state_->allow(name);
}
IssueMetrics::~IssueMetrics() = default;

void IssueMetrics::widen(const Options& options) {
  const core::MutexLock lock(state_->mutex);
  Options& own = state_->options;
  if (!std::exchange(state_->configured, true)) {
    own = options;  // the defaults of nobody
    state_->allowed.clear();
  }
  own.max_series = std::max(own.max_series, options.max_series);
  own.linger = std::max(own.linger, options.linger);
  for (const std::string& name : options.labels) state_->allow(name);
  state_->name_series();
}

void IssueMetrics::replace(const Options& options) {
  const core::MutexLock lock(state_->mutex);
  state_->options = options;
  state_->allowed.clear();
  for (const std::string& name : options.labels) state_->allow(name);
  state_->name_series();
}

bool IssueMetrics::apply(const core::NotifiedIssue& issue, WallTime now) {
  const core::MutexLock lock(state_->mutex);
  bool firing = issue.issue.status == core::IssueStatus::firing;
  if (const auto end = state_->ends.find(issue.issue_key);
      end != state_->ends.end() && issue.episode <= end->second) {
    firing = false;  // over before it was told
  }
  const auto found = state_->issues.find(issue.issue_key);
  if (found != state_->issues.end() && issue.episode < found->second.episode) return true;
  if (found != state_->issues.end() && issue.episode == found->second.episode && firing &&
      !found->second.firing) {
    return true;  // an episode that is over does not begin again
  }
  const std::string series = series_of(issue.issue.labels, state_->allowed);
  if (!state_->per_series.contains(series) && !state_->make_room()) {
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
  known.ended = now == WallTime{} ? std::max(known.transition, WallTime{}) : now;
  return true;
}

void IssueMetrics::end(const std::string& issue_key, std::uint64_t episode, WallTime now) {
  std::vector<std::shared_ptr<IssueMetrics>> pictures;
  {
    const core::MutexLock lock(state_->mutex);
    for (const auto& [integration, picture] : state_->pictures) pictures.push_back(picture);
  }
  for (const auto& picture : pictures) picture->end(issue_key, episode, now);
  const core::MutexLock lock(state_->mutex);
  const auto found = state_->issues.find(issue_key);
  if (found != state_->issues.end() && found->second.episode > episode) return;
  if (found != state_->issues.end() && found->second.episode == episode) {
    if (!std::exchange(found->second.firing, false)) return;
    found->second.transition = found->second.ended = now;
    return;
  }
  const auto [entry, fresh] = state_->ends.try_emplace(issue_key, episode);
  entry->second = std::max(entry->second, episode);
  if (!fresh) return;
  state_->ends_order.push_back(issue_key);
  if (state_->ends_order.size() <= kMaxEarlyEnds) return;
  state_->ends.erase(state_->ends_order.front());
  state_->ends_order.pop_front();
}

std::string IssueMetrics::render(WallTime now) {
  const core::MutexLock lock(state_->mutex);
  std::string active =
      "# HELP tocsin_issue_active 1 while an issue is firing, 0 after its resolve\n"
      "# TYPE tocsin_issue_active gauge\n";
  std::string transition =
      "# HELP tocsin_issue_last_transition_timestamp_seconds when it last began or ended\n"
      "# TYPE tocsin_issue_last_transition_timestamp_seconds gauge\n";
  std::string episodes =
      "# HELP tocsin_issue_episodes_total how often it has begun\n"
      "# TYPE tocsin_issue_episodes_total counter\n";
  for (const auto& [labels, sum] : state_->sums(now)) {
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

std::vector<IssueSeries> IssueMetrics::series(WallTime now,
                                              const std::set<std::string>* issue_keys) {
  const core::MutexLock lock(state_->mutex);
  std::set<std::string> wanted;
  for (const auto& [key, known] : state_->issues) {
    if (issue_keys != nullptr && issue_keys->contains(key)) wanted.insert(known.series);
  }
  std::vector<IssueSeries> out;
  for (const auto& [name, sum] : state_->sums(now)) {
    if (issue_keys == nullptr || wanted.contains(name)) out.push_back(state_->data_of(sum));
  }
  return out;
}

void IssueMetrics::forget() {
  const core::MutexLock lock(state_->mutex);
  state_->issues.clear();
  state_->per_series.clear();
  state_->ends.clear();
  state_->ends_order.clear();
}

std::shared_ptr<IssueMetrics> IssueMetrics::picture(const std::string& integration,
                                                    const Options& options) {
  const core::MutexLock lock(state_->mutex);
  auto& out = state_->pictures[integration];
  if (out == nullptr) out = std::make_shared<IssueMetrics>();
  out->replace(options);
  return out;
}

void IssueMetrics::show(const std::string& integration, const core::NotifiedIssue& issue) {
  std::shared_ptr<IssueMetrics> picture;
  {
    const core::MutexLock lock(state_->mutex);
    const auto found = state_->pictures.find(integration);
    if (found != state_->pictures.end()) picture = found->second;
  }
  (picture == nullptr ? *this : *picture).apply(issue);
}

}  // namespace tocsin::actions
