// Tensors of a run in a store of series, for tests.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {

class TensorFolder : public SeriesFolder {
 protected:
  static void name_tensor(SeriesWriter& store, std::uint64_t hash, const std::string& text,
                          core::Role role = core::Role::gradient) {
    store.name(run(), FamilyKind::tensor, {hash, text, role, "", 0, "4×2", "gradients"});
  }
  // Of ten elements; not finite: one of them is NaN.
  static std::array<double, tensor_column::columns> numbers(double l2, std::int64_t x) {
    std::array<double, tensor_column::columns> out{};
    out.fill(l2);
    out[tensor_column::time] = 1e15 + static_cast<double>(x) * 1e6;
    out[tensor_column::zero] = 0.2;
    out[tensor_column::negative] = 0.3;
    out[tensor_column::nan] = std::isfinite(l2) ? 0 : 1;
    out[tensor_column::posinf] = out[tensor_column::neginf] = 0;
    out[tensor_column::count] = 10;
    return out;
  }
  static void add_tensor(SeriesWriter& store, std::uint64_t hash, std::int64_t x, double l2,
                         const SegmentOf& of = segment()) {
    store.add(of, FamilyKind::tensor, hash, core::Mode::train, x, numbers(l2, x));
  }
  static TensorAsk of_run() {
    TensorAsk out;
    out.run = core::to_text(run());
    return out;
  }
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace tocsin::insights
