// All that the rule reward knows of a run, and what each part of it comes to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "rules/builtin/losses/return_course.h"
#include "rules/builtin/losses/reward_signals.h"
#include "rules/builtin/shared/reward_names.h"
#include "rules/contract/archive.h"

namespace tocsin::rules {

// Units that are no logged name: what the hook has counted of transitions and episodes.
inline constexpr std::string_view kTransition = "transition/";
inline constexpr std::string_view kObservation = "transition/observation";
inline constexpr std::string_view kDone = "transition/done";
inline constexpr std::string_view kRatio = "transition/ratio";
inline constexpr std::string_view kWeight = "transition/weight";
inline constexpr std::string_view kEpisodeReturns = "episode returns";

struct RewardState {
  static constexpr std::size_t kMost = 32;    // series of each kind
  static constexpr double kEpisodes = 20;     // that show that episodes begin anew
  static constexpr double kLongEpisodes = 2;  // transitions; shorter ones may have one observation
  static constexpr double kHalf = 0.5;        // of the plan
  static constexpr double kRandom = 0.5;  // share of random actions of a policy that knows nothing
  static constexpr double kEntropies = 64;    // values
  static constexpr double kUndecided = 0.05;  // of the first entropy, that it may have changed

  RewardRun run;
  RewardBounds bounds;  // for what is told at the end
  std::map<std::string, ReturnCourse> returns;
  std::map<std::string, ReturnCourse>
      rewards;  // means per transition or answer: they say whether it grew
  std::map<std::string, LengthCourse> lengths;
  std::map<std::string, ExplainedCourse> explained;
  std::map<std::string, SignalCourse> signals;
  std::map<std::string, TargetCourse> targets;
  MemoryCourse memory;
  double ends = 0;  // episodes that the world ended, not a limit of time
  double told = 0;  // updates when the newest sum was told
  // Of the newest step with anything of it:
  std::uint64_t mode = 0;
  std::int64_t step = 0;
  std::int64_t time = 0;

  template <typename A>
  friend void io(A& a, RewardState& s) {
    io_all(a, s.run, s.bounds, s.returns, s.rewards, s.lengths, s.explained, s.signals, s.targets,
           s.memory, s.ends, s.told, s.mode, s.step, s.time);
  }

  [[nodiscard]] bool empty() const {
    return returns.empty() && lengths.empty() && explained.empty() && signals.empty() &&
           targets.empty() && memory.draws == 0;
  }
  [[nodiscard]] double episodes() const {
    double most = 0;
    for (const auto& [name, course] : returns) most = std::max(most, course.episodes);
    return most;
  }
  [[nodiscard]] bool any_better() const {
    return std::any_of(returns.begin(), returns.end(),
                       [](const auto& one) { return one.second.better != 0; });
  }
  /// Answers have become long while the reward grew.
  [[nodiscard]] bool too_long(const LengthCourse& course) const {
    return course.grown != 0 &&
           (any_better() || std::any_of(rewards.begin(), rewards.end(),
                                        [](const auto& one) { return one.second.better != 0; }));
  }
  /// A signal that may stay as it is until the first success has waited long enough.
  [[nodiscard]] bool late(double seen, bool over) const {
    const double share = run.share();
    return share > 0 ? share >= kHalf : over || seen >= bounds.patience;
  }
  [[nodiscard]] bool returns_never_vary() const {
    return episodes() >= kEpisodes &&
           std::all_of(returns.begin(), returns.end(),
                       [](const auto& one) { return one.second.varied == 0; });
  }
  [[nodiscard]] bool any(RewardSignal kind, bool changing) const {
    return std::any_of(signals.begin(), signals.end(), [&](const auto& one) {
      return kind_of(one.first) == kind && (one.second.changes > 0) == changing;
    });
  }
  static RewardSignal kind_of(const std::string& name) {
    return name == kWeight ? RewardSignal::weight : reward_signal(name);
  }

  /// It should vary and does not.
  [[nodiscard]] bool flat(const std::string& name, const SignalCourse& course, bool over) const {
    if (course.seen < bounds.transitions) return false;
    if (name == kDone) return done_is_flat(course);
    if (!course.still(bounds.transitions)) return false;
    if (name == kObservation) return run.transitions >= kLongEpisodes * episodes();
    if (name == kRatio) return course.ones == 0;  // 1: each batch is used once
    switch (kind_of(name)) {
      case RewardSignal::priority:
        return true;
      case RewardSignal::weight:
        return any(RewardSignal::priority, true);
      case RewardSignal::reward:
        return returns_never_vary() && late(course.seen, over);
      case RewardSignal::advantage:
      case RewardSignal::entropy:
        return episodes() >= kEpisodes && !any_better() && late(course.seen, over);
      default:
        return false;
    }
  }
  /// Returns without a reward beside them that tells more.
  [[nodiscard]] bool flat(const ReturnCourse& course, bool over) const {
    const double known = std::max(run.transitions, course.episodes);
    return course.varied == 0 && course.episodes >= kEpisodes && known >= bounds.transitions &&
           !any(RewardSignal::reward, true) && !any(RewardSignal::reward, false) &&
           late(known, over);
  }
  /// Returns that stay as they are may belong to a policy that was good from the beginning. So it takes a sign that
  /// it was not: they fell, the first actions were random, or the policy is as undecided as it was.
  /// Agents that begin to trust what they have learned may do worse than chance for a while, so it takes half of the plan.
  [[nodiscard]] bool no_better(const ReturnCourse& course, bool over) const {
    const double share = run.share();
    const bool is_late = share > 0 ? share >= kHalf : over || run.updates >= bounds.updates;
    return is_late && course.told != 0 && !any_better() &&
           (course.fallen != 0 || run.explored >= kRandom || still_undecided());
  }

 private:
  [[nodiscard]] bool still_undecided() const {
    return std::any_of(signals.begin(), signals.end(), [](const auto& one) {
      const SignalCourse& course = one.second;
      return course.valued != 0 && course.seen >= kEntropies &&
             kind_of(one.first) == RewardSignal::entropy &&
             std::fabs(course.last - course.first) <= kUndecided * std::fabs(course.first);
    });
  }
  [[nodiscard]] bool done_is_flat(const SignalCourse& course) const {
    if (course.ones == 0) return ends >= kEpisodes;
    return course.ones == course.seen && episodes() >= kEpisodes &&
           run.transitions >= kLongEpisodes * episodes();
  }
};

}  // namespace tocsin::rules
