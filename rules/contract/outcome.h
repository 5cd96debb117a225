// What one evaluation of a rule answers, and how often each answer came.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tocsin::rules {

enum class EvaluationOutcome : std::uint8_t { ok, hit, insufficient_data, not_applicable, error };
inline constexpr std::size_t kEvaluationOutcomes = 5;
std::string_view to_string(EvaluationOutcome outcome) noexcept;

/// The answer of one evaluation. `kinds`: bit k = the rule's k-th kind holds (rules without kinds
/// use bit 0).
struct Verdict {
  EvaluationOutcome outcome = EvaluationOutcome::ok;
  std::uint8_t kinds = 0;
};
inline constexpr Verdict kOk{EvaluationOutcome::ok, 0};
inline constexpr Verdict kInsufficient{EvaluationOutcome::insufficient_data, 0};
inline constexpr Verdict kNotApplicable{EvaluationOutcome::not_applicable, 0};
constexpr Verdict hit(unsigned kind = 0) noexcept {
  return {EvaluationOutcome::hit, static_cast<std::uint8_t>(1U << kind)};
}

using EvaluationCounts = std::array<std::uint64_t, kEvaluationOutcomes>;

/// Counts outcomes in one word, so that rows do not wait for each other's count.
class OutcomeTally {
 public:
  explicit OutcomeTally(EvaluationCounts& counts) noexcept : counts_(counts) {}
  OutcomeTally(const OutcomeTally&) = delete;
  OutcomeTally& operator=(const OutcomeTally&) = delete;
  ~OutcomeTally() { flush(); }
  void add(EvaluationOutcome outcome) noexcept {
    packed_ += std::uint64_t{1} << (kBits * static_cast<unsigned>(outcome));
    if (++added_ == (1U << kBits) - 1) flush();
  }

 private:
  static constexpr unsigned kBits = 64 / kEvaluationOutcomes;
  void flush() noexcept {
    for (std::uint64_t& count : counts_) {
      count += packed_ & ((1U << kBits) - 1);
      packed_ >>= kBits;
    }
    packed_ = added_ = 0;
  }

  EvaluationCounts& counts_;
  std::uint64_t packed_ = 0;
  std::uint64_t added_ = 0;
};

}  // namespace tocsin::rules
