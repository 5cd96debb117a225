#include "actions/message/training_scalars.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "actions/message/series_text.h"
#include "core/mutex.h"
#include "core/text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMostPatternBytes = 1000;
constexpr std::int64_t kMostPatternMemory = 1L << 20;
constexpr std::size_t kMostRemembered = 100'000;  // names whose answer is known
constexpr std::size_t kLongestScalarLabel = 256;

RE2::Options pattern_options() {
  RE2::Options out;
  out.set_log_errors(false);
  out.set_max_mem(kMostPatternMemory);
  return out;
}

/// What tells one series from another.
using ScalarKey = std::tuple<core::RunUid, std::uint32_t, std::string, std::string, core::Mode>;

ScalarKey key_of(const LoggedScalar& one) {
  return {one.run, one.rank, one.worker, one.name, one.mode};
}

std::string label_text(const std::string& value) {
  std::string out(core::cut_utf8(value, kLongestScalarLabel));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, '_');
  return out;
}

IssueSeries scalar_series(const LoggedScalar& one) {
  IssueSeries out;
  out.labels = {{"job", label_text(one.job)},       {"mode", std::string(to_string(one.mode))},
                {"rank", std::to_string(one.rank)}, {"run_uid", to_text(one.run)},
                {"scalar", label_text(one.name)},   {"worker", label_text(one.worker)}};
  out.scalar = one.value;
  return out;
}

}  // namespace

std::string scalar_pattern_problem(const std::vector<std::string>& patterns) {
  for (const std::string& one : patterns) {
    if (one.empty() || one.size() > kMostPatternBytes) {
      return "expected a name or a regular expression of at most 1000 bytes";
    }
    const RE2 compiled(one, pattern_options());
    if (!compiled.ok()) return "\"" + one + "\": " + compiled.error();
  }
  return {};
}

struct TrainingScalars::State {
  struct Shown {
    Options options;
    bool scraped = false;
    std::vector<std::unique_ptr<RE2>> patterns;
    std::map<ScalarKey, LoggedScalar> newest;

    [[nodiscard]] bool matches(std::string_view name) const {
      return std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
        return RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *pattern);
      });
    }
  };

  mutable core::Mutex mutex;
  std::map<std::string, Shown> shown GUARDED_BY(mutex);
  mutable std::map<std::string, bool, std::less<>> known GUARDED_BY(mutex);  // answers of wants()
  std::uint64_t refused GUARDED_BY(mutex) = 0;
};

TrainingScalars::TrainingScalars() : state_(std::make_unique<State>()) {}
TrainingScalars::~TrainingScalars() = default;

void TrainingScalars::want(const std::string& integration, const Options& options, bool scraped) {
  const core::MutexLock lock(state_->mutex);
  State::Shown& shown = state_->shown[integration];
  shown.scraped = scraped;
  shown.options = options;
  shown.patterns.clear();
  for (const std::string& one : options.patterns) {
    shown.patterns.push_back(std::make_unique<RE2>(one, pattern_options()));
  }
  std::erase_if(shown.newest, [&](const auto& one) { return !shown.matches(one.second.name); });
  state_->known.clear();
}

bool TrainingScalars::wanted() const {
  const core::MutexLock lock(state_->mutex);
  return std::any_of(state_->shown.begin(), state_->shown.end(),
                     [](const auto& one) { return !one.second.patterns.empty(); });
}

bool TrainingScalars::wants(std::string_view name) const {
  const core::MutexLock lock(state_->mutex);
  const auto found = state_->known.find(name);
  if (found != state_->known.end()) return found->second;
  const bool out = std::any_of(state_->shown.begin(), state_->shown.end(),
                               [&](const auto& one) { return one.second.matches(name); });
  if (state_->known.size() < kMostRemembered) state_->known.emplace(name, out);
  return out;
}

void TrainingScalars::note(const LoggedScalar& scalar) {
  const core::MutexLock lock(state_->mutex);
  for (auto& one : state_->shown) {
    State::Shown& shown = one.second;
    if (!shown.matches(scalar.name)) continue;
    const auto found = shown.newest.find(key_of(scalar));
    if (found != shown.newest.end()) {
      if (scalar.time >= found->second.time) found->second = scalar;
      continue;
    }
    if (shown.newest.size() >= shown.options.max_series) {
      ++state_->refused;
      continue;
    }
    shown.newest.emplace(key_of(scalar), scalar);
  }
}

void TrainingScalars::forget() {
  const core::MutexLock lock(state_->mutex);
  for (auto& one : state_->shown) one.second.newest.clear();
}

std::vector<LoggedScalar> TrainingScalars::newest(const std::string& integration,
                                                  core::WallTime now) {
  const core::MutexLock lock(state_->mutex);
  std::vector<LoggedScalar> out;
  const auto found = state_->shown.find(integration);
  if (found == state_->shown.end()) return out;
  State::Shown& shown = found->second;
  std::erase_if(shown.newest,
                [&](const auto& one) { return now - one.second.time > shown.options.linger; });
  for (const auto& one : shown.newest) {
    if (std::isfinite(one.second.value)) out.push_back(one.second);
  }
  return out;
}

std::vector<IssueSeries> TrainingScalars::series(const std::string& integration,
                                                 core::WallTime now) {
  std::vector<IssueSeries> out;
  for (const LoggedScalar& one : newest(integration, now)) out.push_back(scalar_series(one));
  std::sort(out.begin(), out.end(),
            [](const IssueSeries& a, const IssueSeries& b) { return a.labels < b.labels; });
  return out;
}

std::string TrainingScalars::scraped_text(core::WallTime now) {
  std::vector<std::string> integrations;
  {
    const core::MutexLock lock(state_->mutex);
    for (const auto& [integration, shown] : state_->shown) {
      if (shown.scraped) integrations.push_back(integration);
    }
  }
  std::map<std::vector<std::pair<std::string, std::string>>, IssueSeries> all;
  for (const std::string& one : integrations) {
    for (IssueSeries& series : this->series(one, now)) {
      auto labels = series.labels;
      all.emplace(std::move(labels), std::move(series));
    }
  }
  std::vector<IssueSeries> out;
  out.reserve(all.size());
  for (auto& one : all) out.push_back(std::move(one.second));
  return scalars_text(out);
}

std::uint64_t TrainingScalars::refused() const {
  const core::MutexLock lock(state_->mutex);
  return state_->refused;
}

}  // namespace tocsin::actions
