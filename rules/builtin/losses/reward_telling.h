// What the rule reward tells: sentences of its findings, and the numbers of a run's card.
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "rules/builtin/losses/reward_state.h"
#include "rules/contract/finding.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

inline Finding no_better_finding(const std::string& name, const ReturnCourse& course,
                                 const RewardState& state) {
  const ReturnComparison& now = course.newest;
  Finding out = Finding::that("gain", now.gain() / now.deviation);
  out.is("<", "margin", state.bounds.margin)
      .titled(name, Verb::is, "no better than at the start")
      .says(sentence("After {} updates the mean of {} is {} over the newest {} episodes. Over the "
                     "first {}, those of an untrained policy, it was {} (deviation {}).",
                     course.told_at, name, now.mean, now.episodes, now.first_episodes, now.first,
                     now.deviation))
      .advises(
          "Most probable first: a wrong sign of the reward or the loss; wrong targets at the end "
          "of an episode; exploration that never falls; a wrong learning rate. A policy that was "
          "trained before looks the same.")
      .with("mean", now.mean)
      .with("first", now.first)
      .with("deviation", now.deviation)
      .with("error", now.error)
      .with("episodes", course.episodes);
  return out;
}

inline Finding value_finding(const std::string& name, const ExplainedCourse& course) {
  return Finding::that("explained_variance", course.mean)
      .is("<", "limit", 0)
      .titled("values", Verb::do_not, "predict the returns")
      .says(sentence("From update {} to {}, {} is {} on average (expected: above 0). One constant "
                     "would predict the returns better than the value function does.",
                     course.from, course.told_at, name, course.mean))
      .advises(
          "Most probable first: values and returns with different scales or orders of steps; a "
          "value loss that is clipped away; a wrong learning rate of the value function.")
      .with("newest", course.newest);
}

inline Finding length_finding(const std::string& name, const LengthCourse& course) {
  const ReturnComparison& now = course.course.newest;
  Finding out = Finding::that("times", now.mean / now.first);
  out.is(">", "limit", LengthCourse::kTimes)
      .titled(name, Verb::has, "grown with the reward")
      .says(sentence("After {} updates the mean of {} is {} over the newest {} entries; over the "
                     "first {} it was {}. The reward grew too: it may pay for length.",
                     course.course.told_at, name, now.mean, now.episodes, now.first_episodes,
                     now.first))
      .advises(
          "Read some of the newest answers, and compare rewards of answers of the same length. "
          "Bound the length, or take it out of the reward.")
      .with("mean", now.mean)
      .with("first", now.first);
  out.severity = core::Severity::info;
  return out;
}

inline Finding flat_finding(const std::string& name, const SignalCourse& course,
                            const RewardState& state) {
  if (name == kDone) {
    const bool never = course.ones == 0;
    return Finding::that("done", course.ones / course.seen)
        .is("==", "share", never ? 0 : 1)
        .titled("done", Verb::is, never ? "never set" : "always set")
        .says(never ? sentence("None of {} transitions is marked as the end of an episode, but {} "
                               "episodes ended.",
                               course.seen, state.ends)
                    : sentence("All {} transitions are marked as the end of an episode, but an "
                               "episode has {} transitions on average.",
                               course.seen, state.run.transitions / state.episodes()))
        .advises(never ? "The value of a last state wrongly includes a next one. Store what step() "
                         "returns as terminated with the transition."
                       : "Values never include the next state. Store what step() returns as "
                         "terminated with the transition.")
        .with("episodes", state.episodes());
  }
  Finding out = Finding::that("changes", 0);
  out.is("==", "limit", 0).titled(name, Verb::does_not, "vary");
  const std::string value = course.valued != 0 ? sentence(" ({})", course.last) : std::string();
  const RewardSignal kind = RewardState::kind_of(name);
  if (kind == RewardSignal::reward) {
    out.says(sentence("{} was the same{} all {} times, and all {} episodes had the same return.",
                      name, value, course.seen, state.episodes()))
        .advises(
            "There is nothing to learn from. Check the reward function, and whether exploration "
            "can reach a reward.");
  } else {
    out.says(sentence("{} was the same{} all {} times.", name, value, course.seen))
        .advises(kind == RewardSignal::priority || kind == RewardSignal::weight
                     ? "Check that priorities are written back after each update."
                 : name == kObservation ? "Check that the environment is stepped, and that the "
                                          "array is not copied only once."
                                        : "Check that it is computed from the current batch, and "
                                          "that its gradient is not cut off.");
  }
  return out;
}

inline Finding flat_finding(const std::string& name, const ReturnCourse& course) {
  return Finding::that("changes", 0)
      .is("==", "limit", 0)
      .titled(name, Verb::does_not, "vary")
      .says(sentence("{} was {} in all {} episodes.", name, course.last, course.episodes))
      .advises(
          "There is nothing to learn from. Check the reward function, and whether exploration can "
          "reach a reward.");
}

inline Finding lag_finding(const std::string& name, const TargetCourse& course,
                           TargetCourse::Standing standing) {
  const double gap = course.updates - course.changed_at;
  const bool equal = standing == TargetCourse::kEqual;
  const bool never = standing == TargetCourse::kNever;
  Finding out = Finding::that(equal ? "equal" : "updates", equal ? course.equal : gap);
  out.is(">=", "limit",
         equal   ? TargetCourse::kEqualLooks
         : never ? gap
                 : TargetCourse::kIntervals * course.interval())
      .titled(name, equal ? Verb::is : Verb::does_not,
              equal ? "always the same as the trained network" : "follow the trained network")
      .says(
          equal ? sentence("{} was equal to the trained network at all {} checks in {} updates: it "
                           "does not lag behind.",
                           name, course.looks, course.updates)
          : never
              ? sentence(
                    "{} began as a copy of the trained network and has not changed in {} updates.",
                    name, course.updates)
              : sentence(
                    "{} has not changed in {} updates; before that it changed every {} updates.",
                    name, gap, course.interval()))
      .advises(equal ? "Copy the weights at intervals, or mix in a small share at each update. "
                       "Check that both names are not the same network."
                     : "Call load_state_dict() of the target network at intervals, or mix in the "
                       "trained weights at each update.")
      .with("changes", course.changes)
      .with("looks", course.looks);
  return out;
}

inline Finding fresh_finding(const MemoryCourse& memory) {
  return Finding::that("fresh", memory.was_fresh)
      .is("<", "limit", MemoryCourse::kShare * memory.expected())
      .titled("the memory", Verb::is, "not refreshed")
      .says(sentence("Of {} sampled transitions, {} were sampled for the first time, but {} new "
                     "ones were stored (expected: at least {}).",
                     memory.was_drawn, memory.was_fresh, memory.was_made, memory.expected()))
      .advises(
          "Check that new transitions are stored where batches are sampled, and that indices cover "
          "the whole memory.")
      .with("draws", memory.draws);
}

// ------------------------------------------------------------------------------------- the card

inline core::ValueMap numbers_of(const ReturnCourse& course, const RewardRun& run, bool decided) {
  core::ValueMap out{{"episodes", course.episodes}};
  const ReturnComparison now = course.compared(run);
  if (now.known()) {
    const double width = student_quantile(0.025, static_cast<int>(now.freedom)) * now.error;
    out.emplace_back("mean", now.mean);
    out.emplace_back("first", now.first);
    out.emplace_back("gain", now.gain());
    out.emplace_back("gain_low", now.gain() - width);
    out.emplace_back("gain_high", now.gain() + width);
  }
  if (!decided) out.emplace_back("needs_entries", course.looks.missing());
  return out;
}

inline core::ValueMap numbers_of(const ExplainedCourse& course) {
  core::ValueMap out{{"entries", course.entries}};
  out.emplace_back("newest", course.newest);
  if (course.told_at > 0) {
    out.emplace_back("mean", course.mean);
  } else {
    out.emplace_back("needs_entries", course.looks.missing());
  }
  return out;
}

inline core::ValueMap numbers_of(const SignalCourse& course, const RewardBounds& bounds) {
  core::ValueMap out{{"seen", course.seen}};
  out.emplace_back("changes", course.changes);
  if (course.changes == 0 && course.seen < bounds.transitions) {
    out.emplace_back("needs", bounds.transitions - course.seen);
  }
  return out;
}

inline core::ValueMap numbers_of(const TargetCourse& course) {
  core::ValueMap out{{"updates", course.updates}};
  out.emplace_back("changes", course.changes);
  if (course.changes > 0) out.emplace_back("interval", course.interval());
  return out;
}

inline core::ValueMap numbers_of(const MemoryCourse& memory) {
  core::ValueMap out{{"drawn", memory.draws}};
  if (memory.knows()) {
    out.emplace_back("fresh", memory.was_fresh / memory.was_drawn);
    out.emplace_back("expected", memory.expected() / memory.was_drawn);
  }
  return out;
}

}  // namespace tocsin::rules
