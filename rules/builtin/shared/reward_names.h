// What a logged scalar says of learning by reward, by the words of its name: `episode_return`,
// `rollout/ep_rew_mean`, `train/explained_variance`. Names of evaluations, of spreads and of settings say nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "rules/builtin/shared/metric_name.h"

namespace tocsin::rules {

enum class RewardSignal : std::uint8_t {
  none,
  returns,  // of one episode, or a mean over some
  reward,   // of one transition, or a mean over some
  advantage,
  entropy,      // of the policy
  explained,    // 1 − Var(return − value) / Var(return)
  priority,     // of a transition in a memory
  weight,       // that corrects for priorities
  exploration,  // share of random actions
  length,       // of an answer, in tokens
};

namespace words {

inline bool has_any(const Words& all, std::initializer_list<std::string_view> of) {
  for (std::size_t i = 0; i < all.count; ++i) {
    if (is_any(all.word[i], of)) return true;
  }
  return false;
}

}  // namespace words

/// What selects such names, before reward_signal() reads them.
inline constexpr std::string_view kRewardNames =
    "(?i)(^|[^a-z])(rewards?|rew|returns?|advantages?|adv|entropy|explained|priority|priorities|"
    "importance|is|epsilon|exploration)($|[^a-z])|(completion|response|answer|generat).*len";

namespace words {

inline bool names_evaluation(const Words& all) {
  for (std::size_t i = 0; i < all.count; ++i) {
    if (names_set(all.word[i]) && !trains(all.word[i])) return true;
  }
  return false;
}

/// `completions/mean_length`, `response_length/mean`.
inline bool names_length(const Words& all) {
  return has_any(all, {"completion", "completions", "response", "responses", "answer", "answers",
                       "generation", "generations", "generated"}) &&
         has_any(all, {"length", "lengths", "len"});
}

/// The share that was cut off, or what ended by itself.
inline bool names_part_of_lengths(const Words& all) {
  return has_any(all, {"clip", "clipped", "ratio", "terminated", "reward", "rewards", "penalty"});
}

/// Rewards as such: of an episode or of a transition.
inline RewardSignal paid(const Words& all) {
  const bool whole = has_any(all, {"episode", "episodic", "episodes", "ep", "mean", "avg",
                                   "average", "total", "sum", "cumulative"});
  if (has_any(all, {"return"}) || (whole && has_any(all, {"returns"}))) {
    return RewardSignal::returns;
  }
  if (has_any(all, {"reward", "rewards", "rew"})) {
    return whole ? RewardSignal::returns : RewardSignal::reward;
  }
  return RewardSignal::none;
}

}  // namespace words

inline RewardSignal reward_signal(std::string_view name) {
  using words::has_any;
  if (name.starts_with("ledger/")) return RewardSignal::none;
  const words::Words all(name);
  if (words::names_evaluation(all)) return RewardSignal::none;
  if (has_any(all, {"explained"}) && has_any(all, {"variance", "var"})) {
    return RewardSignal::explained;
  }
  if (has_any(all, {"std",    "var",   "variance",    "dev",      "norm", "max",   "min",
                    "median", "coef",  "coefficient", "bonus",    "beta", "scale", "target",
                    "grad",   "cross", "running",     "smoothed", "ema",  "decay"})) {
    return RewardSignal::none;
  }
  if (has_any(all, {"epsilon", "exploration"})) return RewardSignal::exploration;
  if (words::names_length(all)) {
    return words::names_part_of_lengths(all) ? RewardSignal::none : RewardSignal::length;
  }
  if (has_any(all, {"entropy"})) return RewardSignal::entropy;
  if (has_any(all, {"loss", "error"})) return RewardSignal::none;
  if (has_any(all, {"advantage", "advantages", "adv"})) return RewardSignal::advantage;
  if (has_any(all, {"priority", "priorities"})) return RewardSignal::priority;
  if (has_any(all, {"importance", "is"}) && has_any(all, {"weight", "weights"})) {
    return RewardSignal::weight;
  }
  return words::paid(all);
}

/// What selects names that learns_by_reward() reads.
inline constexpr std::string_view kRewardJobNames =
    "(?i)(^|[^a-z])(rewards?|rew|returns?|policy|actor)($|[^a-z])";

/// Whether a logged name says that the job learns by reward: its losses have targets that it moves itself.
/// `return` alone is a word of finance, too.
inline bool learns_by_reward(std::string_view name) {
  const words::Words all(name);
  if (words::has_any(all, {"policy", "actor"})) return words::has_any(all, {"loss"});
  const RewardSignal signal = reward_signal(name);
  if (signal == RewardSignal::reward) return true;
  return signal == RewardSignal::returns &&
         words::has_any(all, {"reward", "rewards", "rew", "episode", "episodes", "ep", "episodic"});
}

}  // namespace tocsin::rules
