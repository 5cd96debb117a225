// Tensors at one step: what their elements are, beside what is usual, and which was bad first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/heat_query.h"

namespace tocsin::insights {

struct HealthAsk {
  TensorAsk of;
  std::optional<std::int64_t> step;  // not given: the first bad one, else the newest
  std::size_t most = 500;            // tensors
};

/// Elements of a tensor at its newest step up to the one that was asked for; workers together.
struct HealthLine {
  NameLine name;
  std::int64_t step = 0;
  std::int64_t elements = 0;
  std::int64_t neginf = 0, negative = 0, zero = 0, positive = 0, posinf = 0, nan = 0;
  double l2 = 0;                       // the greatest of the workers'
  std::optional<double> usual_l2;      // median of the 200 steps before
  std::optional<std::int64_t> bad_at;  // its first step that was not finite
};

/// What was not finite before everything else, in the order of a training step: the weights that it
/// begins with, what goes in, forward, the loss, backward, the optimizer's state.
struct FirstBad {
  NameLine name;
  core::Mode mode = core::Mode::global;
  std::int64_t step = 0;
};

struct HealthAnswer {
  std::optional<core::Mode> mode;
  std::optional<std::int64_t> step;  // nullopt: there are no tensors
  std::int64_t tensors = 0;          // that were asked for and have values
  std::optional<FirstBad> first_bad;
  std::vector<HealthLine> lines;  // in model order; the bad ones first if they are too many
  std::int64_t rows_from =
      0;  // the step is before it, and its values are gone by their age; 0: they are there
};

core::Result<HealthAnswer> ask_health(SeriesReader& reader, const HealthAsk& ask);

/// The place of a role in a training step.
int phase_of(core::Role role);

}  // namespace tocsin::insights
