// Fires when a loss that expects logits is given probabilities.
//
// Reads   the field `ceiling` of the ledger (docs/ledger.md); where it has none, the input of a
//         cross-entropy loss (by its name): minimum, maximum, sum, and its shape.
// Window  `samples` saved steps in a row, per loss call or tensor, worker and mode; judged at the end
//         of each.
// Fires   the ledger has a ceiling; or all values lie in 0 … 1 and the rows sum to 1:
//         |Σ x / rows − 1| <= tolerance, where a row runs along axis 1.
// Quiet   of tensors where the ledger of that worker and mode ever had a ceiling; for tensors of fewer
//         than two classes or of unknown shape; for values that are not finite.
// Source  ours; docs/rules/probabilities_into_loss.md.

#include <cmath>
#include <map>

#include "core/identity.h"
#include "rules/builtin/shared/ledger_rows.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

struct ProbabilitiesIntoLoss {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr bool kPerWorker = true;
  static constexpr std::span<const Sent> kSent{};

  static constexpr std::size_t kMostCalls = 64;
  static constexpr const char* kAdvice =
      "Remove the softmax before the loss. The loss applies its own, and the two together make "
      "gradients far too small.";

  struct Config {
    std::uint32_t samples = 3;
    double tolerance = 1e-3;
  };
  struct State {
    std::map<std::uint64_t, std::uint32_t> steps;  // in a row, by name
    std::map<std::uint64_t, std::uint32_t> calls;  // the same of the ledger's, by name of the call
    AnswersSoFar answers;
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.steps, s.calls, s.answers);
    }
  };

  // CrossEntropyLoss_input_0, loss_fn/cross_entropy_input, sparse_categorical_crossentropy_input_0:
  // losses that take logits. NLLLoss takes logarithms, which are never above 0.
  static Defaults defaults(Preset) {
    return {.patterns = {"(?i)cross_?entropy[^/]*_input(_0)?$",
                         "^ledger/.+/(ceiling|samples|trivial)$"}};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("samples", cfg.samples, config::at_least(1U),
                "saved steps in a row that must show it");
    in.optional("tolerance", cfg.tolerance, config::between(0.0, 0.5),
                "how far from 1 the mean sum of a row may be");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}, {"predictions"}}; }

  /// Mean sum of a row; nullopt: the shape has no classes, or is unknown.
  static std::optional<double> row_sum(const StepRow& row, const Name* name) {
    if (name == nullptr || name->shape.empty()) return std::nullopt;
    const std::vector<std::int64_t>& shape = name->shape;
    const std::int64_t classes = shape.size() == 1 ? shape[0] : shape[1];
    if (classes < 2) return std::nullopt;
    return row.row.sum * static_cast<double>(classes) / row.row.n();
  }

  /// A call of whose loss the ledger knows, or once knew, a ceiling.
  static void judge_call(const Config& cfg, State& state, const LedgerCall& call,
                         SetReport& report) {
    if (call[LedgerCall::samples] <= 0) return;
    const bool such = call.has(LedgerCall::ceiling);
    const std::uint64_t number = core::name_hash(call.name);
    const std::string name(call.name);
    if (!such) state.answers.note(name, kOk, {});
    if (!such && !state.calls.contains(number)) return;
    if (state.calls.size() >= kMostCalls && !state.calls.contains(number)) return;
    std::uint32_t& steps = state.calls[number];
    steps = such ? std::min(steps + 1, cfg.samples) : 0;
    const Verdict verdict = !such ? kOk : steps < cfg.samples ? kInsufficient : hit();
    if (such) {
      state.answers.note(name, verdict,
                         {{"ceiling", call[LedgerCall::ceiling]},
                          {"steps", steps},
                          {"needs_steps", static_cast<double>(cfg.samples - steps)}});
    }
    report.evaluated({{"metric", name}}, name, verdict, [&](const Subject& subject, unsigned) {
      const double ceiling = call[LedgerCall::ceiling];
      Finding finding = Finding::that("ceiling", ceiling);
      std::string most;
      if (call.has(LedgerCall::trivial)) {
        const double trivial = call[LedgerCall::trivial] / call[LedgerCall::samples];
        most = sentence("; the best constant answer has {}", trivial);
        finding.with("trivial", trivial);
      }
      return finding.titled(subject.name, Verb::is, "given probabilities instead of logits")
          .says(sentence("{} gets probabilities at {}, as in {} saved steps in a row, but expects "
                         "logits. The loss of a sample cannot fall below {}{}.",
                         subject.name, subject.place(), cfg.samples, ceiling, most))
          .advises(kAdvice);
    });
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    for (const LedgerCall& call : LedgerStep(set, report.scope()).calls) {
      judge_call(cfg, state, call, report);
    }
    if (!state.calls.empty()) return;  // the same inputs, seen at more steps
    for (const StepRow& row : set.rows) {
      if (row.scalar) continue;
      const auto sum = row_sum(row, report.scope().find(row.name()));
      Verdict verdict = kNotApplicable;
      std::uint32_t& steps = state.steps[row.name()];
      if (sum && row.row.count > 0) {
        const bool finite = std::isfinite(*sum) && row.row.non_finite() == 0;
        const bool such =
            finite && row.row.min >= 0 && row.row.max <= 1 && std::fabs(*sum - 1) <= cfg.tolerance;
        if (finite) steps = such ? std::min(steps + 1, cfg.samples) : 0;
        verdict = !finite || (such && steps < cfg.samples) ? kInsufficient : such ? hit() : kOk;
      }
      const std::string name = report.scope().text(row.name());
      report.evaluated({{"tensor", name}}, name, verdict, [&](const Subject& subject, unsigned) {
        Finding finding = Finding::that("row_sum", *sum);
        finding.is("==", "row_sum", 1)
            .titled(subject.name, Verb::is, "given probabilities instead of logits")
            .says(sentence("{} gets probabilities at {}, but expects logits. In {} saved steps in "
                           "a row its values lie in 0 … 1 and its rows sum to 1.",
                           subject.name, subject.place(), cfg.samples))
            .advises(kAdvice)
            .with("minimum", row.row.min)
            .with("maximum", row.row.max)
            .with("tolerance", cfg.tolerance);
        finding.tensor = report.tensor(row);
        return finding;
      });
    }
  }
};

}  // namespace

RuleDescriptor probabilities_into_loss() {
  return {.name = "probabilities_into_loss",
          .original_name = "ProbabilitiesIntoLoss",
          .title = "A loss that expects logits gets probabilities.",
          .unit = "tensor",
          .needs = "the ledger, or the input of a cross-entropy loss",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<ProbabilitiesIntoLoss>};
}

}  // namespace tocsin::rules
