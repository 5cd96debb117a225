// Fires when one token, usually the padding, fills too much of what a language model reads.
//
// Reads   statistic values(token …) of token inputs; without it the count of zeros and the extremes,
//         which say it for token 0 and for tokens beyond the extremes.
// Window  one step of one tensor, worker and mode; judged on arrival.
// Fires   100 · elements equal to a token / n > its threshold, for any of the tokens; the first such
//         token is told. Floats count within 1e-6.
// Quiet   for empty tensors and tensors with NaN. Where the role selects (preset tocsin): for floats
//         and bool, and for integers that have never been more than 1: masks and segments.
// Source  Amazon SageMaker Debugger, NLPSequenceRatio; docs/rules/nlp_sequence_ratio.md.

#include <charconv>
#include <cmath>

#include "rules/contract/items.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct NlpSequenceRatio {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr double kSame = 1e-6;  // token ids that travel as floats

  struct Token {
    double value = 0;
    double threshold = 50;
  };
  struct Config {
    std::vector<std::string> token_values{"0"};
    std::vector<std::string> token_thresholds_percent{"50"};
    std::vector<Token> tokens;
    bool by_role = false;
  };
  struct State {
    double share = 0;
    std::uint32_t token = 0;   // which of them, of the latest hit
    std::uint32_t tokens = 0;  // 1: the tensor has been seen to hold more than a mask
  };

  static Defaults defaults(Preset preset) {
    if (preset == Preset::tocsin) return {.roles = {core::Role::input}};
    return {.patterns = {".*embedding0_input_0"}};
  }

  static bool read_number(const std::string& text, double& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.by_role = preset == Preset::tocsin;
    read_items(in, "token_values", cfg.token_values, "the tokens that are counted");
    read_items(in, "token_thresholds_percent", cfg.token_thresholds_percent,
               "largest percentage of each, > 0 … 100; a single number is for all");
    cfg.tokens.clear();
    const std::size_t limits = cfg.token_thresholds_percent.size();
    if (cfg.token_values.empty()) in.error("token_values", "token_values must not be empty");
    if (limits != 1 && limits != cfg.token_values.size()) {
      in.error("token_thresholds_percent",
               "token_thresholds_percent needs one number, or as many as token_values has");
      return;
    }
    for (std::size_t i = 0; i < cfg.token_values.size(); ++i) {
      const std::string& limit = cfg.token_thresholds_percent[limits == 1 ? 0 : i];
      Token token;
      if (!read_number(cfg.token_values[i], token.value) || !std::isfinite(token.value)) {
        in.error("token_values", "\"" + cfg.token_values[i] + "\" is no number");
      }
      if (!read_number(limit, token.threshold) || !(token.threshold > 0) || token.threshold > 100) {
        in.error("token_thresholds_percent",
                 "\"" + limit + "\" is no percentage: expected > 0 … 100");
      }
      cfg.tokens.push_back(token);
    }
  }

  static void adjust(const Config& cfg, Program& program) {
    std::string statistic = "values(";
    for (const Token& token : cfg.tokens) statistic += fmt::format("{}, ", token.value);
    statistic.replace(statistic.size() - 2, 2, ")");
    for (const std::string& name : program.common.collection_names) {
      program.needs.push_back({name, {statistic}});
    }
    if (program.common.collection_names.empty()) program.needs.push_back({"inputs", {statistic}});
  }

  static bool is_integer(core::Dtype dtype) {
    return !core::is_floating(dtype) && dtype != core::Dtype::unknown &&
           dtype != core::Dtype::boolean && dtype != core::Dtype::c64 &&
           dtype != core::Dtype::c128 && dtype != core::Dtype::text;
  }

  // How many elements are the token: at least, at most.
  static std::pair<double, double> count(const Row& row, const RowBatch& batch, double token) {
    if (const auto counted = batch.count_of(token, row.index())) return {*counted, *counted};
    if (token < row.min() - kSame || token > row.max() + kSame) return {0, 0};
    if (std::fabs(row.min() - token) <= kSame && std::fabs(row.max() - token) <= kSame) {
      return {row.n(), row.n()};
    }
    const double zeros = static_cast<double>(row.zero());
    if (token != 0) return {0, row.n() - zeros};
    return {zeros, is_integer(row.dtype()) ? zeros : row.n()};
  }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    if (row.count() == 0 || row.dtype() == core::Dtype::text) return kNotApplicable;
    if (row.nan() > 0) return kInsufficient;
    if (row.max() > 1) state.tokens = 1;
    const bool chosen = !cfg.by_role || row.role() != core::Role::input;
    if (!chosen && (!is_integer(row.dtype()) || state.tokens == 0)) return kNotApplicable;
    bool sure = true;
    for (std::size_t k = 0; k < cfg.tokens.size(); ++k) {
      const auto [low, high] = count(row, batch, cfg.tokens[k].value);
      if (100 * low / row.n() > cfg.tokens[k].threshold) {
        state.share = low / row.n();
        state.token = static_cast<std::uint32_t>(k);
        return hit();
      }
      sure = sure && 100 * high / row.n() <= cfg.tokens[k].threshold;
    }
    return sure ? kOk : kInsufficient;
  }

  static double badness(const Config&, const State& state, const Row*) { return state.share; }

  static Finding explain(const Config& cfg, const State& state, const Row* row,
                         const RowBatch* batch, const Subject& subject, unsigned) {
    const Token& token = cfg.tokens[state.token];
    Finding finding = Finding::that("token_percent", 100 * state.share);
    finding.is(">", "token_thresholds_percent", token.threshold)
        .titled(subject.name, Verb::is, sentence("mostly token {}", token.value))
        .says(sentence("{} % of {} are token {} at {} (limit {} %).", 100 * state.share,
                       subject.name, token.value, subject.place(), token.threshold))
        .advises(
            "Batches that are mostly padding waste the device. Sort sequences by length, pack "
            "them, or shorten the longest.")
        .with("token", token.value)
        .with("count", row->count());
    const Name* name = batch->about(*row);
    if (name != nullptr && name->shape.size() >= 2) {
      finding.with("sequence_length", name->shape.back());
    }
    return finding;
  }
};

}  // namespace

RuleDescriptor nlp_sequence_ratio() {
  return {.name = "nlp_sequence_ratio",
          .original_name = "NLPSequenceRatio",
          .title = "One token fills too much of a language model's input.",
          .unit = "tensor",
          .needs = "collection inputs, with statistic values(0)",
          .presets =
              "tocsin looks at integer inputs of the model, by role. original looks at a name that "
              "fits one family of models.",
          .severity = core::Severity::info,
          .groups = group::kPyTorch,
          .read = &read_row_rule<NlpSequenceRatio>};
}

}  // namespace tocsin::rules
