// Fires when chosen tensors consist of zeros.
//
// Reads   the counts of zeros and elements of the tensors that the user selects.
// Window  one step of one tensor, worker and mode; judged on arrival.
// Fires   100 · zero / n >= threshold. ±0 are zero, NaN is not; bool false is zero.
// Quiet   for empty tensors.
// Source  Amazon SageMaker Debugger, AllZero; docs/rules/all_zero.md.

#include <bit>
#include <cstdint>

#include "rules/contract/exact_double.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/contract/together.h"

namespace tocsin::rules {
namespace {

struct AllZero {
  static constexpr std::span<const std::string_view> kKinds{};

  struct Config {
    double threshold = 100;
  };
  struct State {};

  static Defaults defaults(Preset) { return {.needs_selector = true}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::above(0, 100),
                "percentage of zeros from which it fires");
  }

  static void adjust(const Config&, Program& program) {
    for (const std::string& name : program.common.collection_names) program.needs.push_back({name});
  }

  static double share(const Row& row) { return 100.0 * static_cast<double>(row.zero()) / row.n(); }

  static Verdict update(const Config& cfg, State&, const Row& row, const RowBatch&) {
    if (row.count() == 0) return kNotApplicable;
    return share(row) >= cfg.threshold ? hit() : kOk;
  }

  // Where each share of zeros is below the threshold by more than rounding, which needs no division.
  // Without branches, so that several rows are looked at in one instruction.
  TOCSIN_TOGETHER static bool quiet(const Config& cfg, const RowBatch& batch, std::size_t from,
                                    std::size_t count) {
    constexpr double kPercent = 100 * (1 + 1e-9);
    const auto counts = batch.column<std::uint64_t>(core::summary_column::count, from);
    const auto zeros = batch.column<std::uint64_t>(core::summary_column::zero, from);
    std::uint64_t large = 0;                 // its sign: a number beyond what exact_double takes
    std::uint64_t less = ~std::uint64_t{0};  // its sign: all shares are; none is of a count of 0
    for (std::size_t i = 0; i < count; ++i) {
      large |= (kExactDouble - 1 - counts[i]) | (kExactDouble - 1 - zeros[i]);
      less &= std::bit_cast<std::uint64_t>(kPercent * exact_double(zeros[i]) -
                                           cfg.threshold * exact_double(counts[i]));
    }
    return large >> 63 == 0 && less >> 63 != 0;
  }

  static double badness(const Config&, const State&, const Row* row) {
    return row == nullptr ? 0 : share(*row);
  }

  static Finding explain(const Config& cfg, const State&, const Row* row, const RowBatch* batch,
                         const Subject& subject, unsigned) {
    return Finding::that("zero_percent", share(*row))
        .is(">=", "threshold", cfg.threshold)
        .titled(subject.name, Verb::is,
                batch->scalar                 ? "0"
                : row->zero() == row->count() ? "all zero"
                                              : "mostly zero")
        .says(batch->scalar
                  ? sentence("{} is exactly 0 at {}.", subject.name, subject.place())
                  : sentence("{} of the {} values of {} are zero ({} %, limit {} %) at {}.",
                             row->zero(), row->count(), subject.name, share(*row), cfg.threshold,
                             subject.place()))
        .advises(
            "A layer without signal learns nothing. Check its input, its initialisation, and "
            "whether its gradient reaches it. Biases start at zero by design: set start_step 1 for "
            "them.")
        .with("zero", row->zero())
        .with("count", row->count());
  }
};

}  // namespace

RuleDescriptor all_zero() {
  return {.name = "all_zero",
          .original_name = "AllZero",
          .title = "Too many values of a chosen tensor are zero.",
          .unit = "tensor",
          .needs = "the tensors named by collection_names or tensor_regex",
          .presets = "",
          .severity = core::Severity::warning,
          .read = &read_row_rule<AllZero>};
}

}  // namespace tocsin::rules
