// What trainings send, drawn from random numbers, and what the engine makes of it as text.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/rule_harness.h"

namespace tocsin::rules::stories {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

inline constexpr std::size_t kWhole = std::size_t{1} << 40;  // a snapshot in one piece

inline constexpr char kRules[] =
    "  - {use: exploding_tensor, with: {cooldown: 500ms}}\n"
    "  - {use: vanishing_gradient, with: {min_hits: 2}}\n"
    "  - {use: loss_not_decreasing, with: {num_steps: 2}}\n"
    "  - {use: loss_not_decreasing, name: original_loss, preset: original, with: {num_steps: 3}}\n"
    "  - {use: weight_update_ratio, preset: original}\n"
    "  - {use: overfit, preset: original, with: {ratio_threshold: 0.3}}\n"
    "  - {use: overfit, name: turned}\n"
    "  - {use: all_zero, with: {collection_names: [gradients, losses]}}\n"
    "  - {use: stalled_training_rule, with: {threshold: 5}}\n"
    "  - {use: cpu_bottleneck, with: {patience: 2, scan_interval_us: 1000000}}";

inline double loss_of(int choice) {
  static const double kLosses[] = {1.0, 0.5, 0.9, 3.0, 0.0, std::nan(""), HUGE_VAL, 0.1};
  return kLosses[choice % 8];
}

/// What one worker sends: some steps with odd values, evaluations in between, perhaps lost frames.
inline std::vector<OwnedFrame> story(const std::string& run, std::uint32_t rank,
                                     std::uint32_t world, const std::vector<int>& choices) {
  FakeWorker worker("digits", run, rank, world);
  std::vector<OwnedFrame> frames{
      worker.start(),
      worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss},
                         {core::DictionaryType::tensor, "g", Role::gradient},
                         {core::DictionaryType::series, "hw.gpu.utilization{hw.id=0}"},
                         {core::DictionaryType::series,
                          "system.cpu.utilization{cpu.logical_number=0,cpu.mode=idle}"}})};
  std::int64_t batch = 0;
  for (std::size_t s = 0; s < choices.size(); ++s) {
    const int choice = std::abs(choices[s] % 1000);
    const auto step = static_cast<std::int64_t>(s);
    const double x = choice % 7 == 0 ? std::nan("") : choice % 3 == 0 ? 0.0 : 0.5;
    const double l2 = choice % 5 == 0 ? 1e3 : 1;
    frames.push_back(worker.summary(
        Mode::train, step,
        {row_of("g", Role::gradient, 4, x, x), row_of("w", Role::weight, 4, l2, l2)}));
    if (choice % 11 == 0) ++worker.header.sequence;  // a frame that got lost
    frames.push_back(worker.scalars(Mode::train, {{"loss", step, loss_of(choice)}}));
    frames.push_back(worker.step_end(Mode::train, step));
    if (choice % 4 == 0) {
      frames.push_back(worker.system({{"hw.gpu.utilization{hw.id=0}", worker.header.time, 0.01},
                                      {"system.cpu.utilization{cpu.logical_number=0,cpu.mode=idle}",
                                       worker.header.time, 0.01}}));
    }
    if (s % 3 == 2) {
      for (int i = 0; i < 2; ++i) {
        frames.push_back(worker.scalars(Mode::eval, {{"loss", batch, loss_of(choice + i)}}));
        frames.push_back(worker.step_end(Mode::eval, batch++));
      }
      ++worker.header.pass;
    }
  }
  frames.push_back(worker.end());
  return frames;
}

inline std::string text(const Event& event) {
  if (const auto* issue = std::get_if<core::Issue>(&event)) {
    std::string causes;
    for (const core::Cause& cause : issue->caused_by) causes += " after " + cause.event_id;
    return issue->event_id + " #" + std::to_string(issue->sequence) + " " + issue->rule + " " +
           std::string(core::to_string(issue->status)) + " " + issue->summary + " x" +
           std::to_string(issue->evidence.occurrences) + " since " +
           core::to_rfc3339(issue->starts_at) + causes +
           (issue->ending ? " ended: " + issue->ending->summary : "");
  }
  if (const auto* job = std::get_if<core::JobEvent>(&event)) {
    return std::string(core::to_string(job->phase)) + std::to_string(job->number) + job->outcome;
  }
  if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
    std::string counts;
    for (const auto& [outcome, count] : status->evaluations) {
      counts += outcome + std::to_string(count);
    }
    return status->rule + " " + std::string(core::to_string(status->status)) + counts;
  }
  return std::get<core::Command>(event).command_id;
}

inline std::vector<OwnedFrame> interleave(const std::vector<std::vector<OwnedFrame>>& stories,
                                          const std::vector<int>& choices) {
  std::vector<OwnedFrame> out;
  std::vector<std::size_t> next(stories.size());
  for (std::size_t i = 0;; ++i) {
    std::vector<std::size_t> left;
    for (std::size_t w = 0; w < stories.size(); ++w) {
      if (next[w] < stories[w].size()) left.push_back(w);
    }
    if (left.empty()) return out;
    const int choice = choices.empty() ? 0 : std::abs(choices[i % choices.size()] % 1000);
    const std::size_t w = left[static_cast<std::size_t>(choice) % left.size()];
    out.push_back(stories[w][next[w]++]);
  }
}

}  // namespace tocsin::rules::stories
