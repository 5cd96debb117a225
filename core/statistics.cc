#include "core/statistics.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/text.h"

namespace tocsin::core {
namespace {

using Form = StatisticForm;

Statistic column(std::size_t id, std::string_view name, std::string_view meaning) {
  return {static_cast<std::uint16_t>(id), name, Form::column, {}, {}, meaning};
}
Statistic derived(std::string_view name, std::string_view meaning) {
  return {0, name, Form::derived, {}, {}, meaning};
}
Statistic sparse(SparseStat stat, std::string_view name, std::string_view request,
                 std::string_view meaning, std::vector<std::string_view> parameters = {}) {
  return {static_cast<std::uint16_t>(stat),
          name,
          Form::sparse,
          request,
          std::move(parameters),
          meaning};
}
Statistic vector(VectorStat stat, std::string_view name, std::string_view request,
                 std::string_view meaning, std::vector<std::string_view> parameters = {}) {
  return {static_cast<std::uint16_t>(stat),
          name,
          Form::vector,
          request,
          std::move(parameters),
          meaning};
}

std::vector<Statistic> table() {
  namespace col = summary_column;
  using S = SparseStat;
  using V = VectorStat;
  return {
      column(col::name, "name", "XXH64 of the name"),
      column(col::count, "count", "elements n"),
      column(col::sum, "sum", "Σ x"),
      column(col::sumsq, "sumsq", "Σ x²"),
      column(col::m2, "m2", "Σ (x − mean)²"),
      column(col::abs_sum, "abs_sum", "Σ |x|"),
      column(col::min, "min", "smallest element; NaN when any element is NaN"),
      column(col::max, "max", "largest element; NaN when any element is NaN"),
      column(col::nan, "nan", "elements that are NaN"),
      column(col::posinf, "posinf", "elements that are +Inf"),
      column(col::neginf, "neginf", "elements that are −Inf"),
      column(col::zero, "zero", "elements that are +0 or −0"),
      column(col::negative, "negative", "elements below 0, −Inf among them"),
      column(col::meta, "meta", "element type, role, flags"),
      derived("mean", "sum / n"),
      derived("abs_mean", "abs_sum / n"),
      derived("l1", "abs_sum"),
      derived("l2", "√sumsq"),
      derived("variance", "m2 / n, of the population"),
      derived("std", "√variance"),
      derived("abs_max", "the larger of |min| and |max|"),
      derived("positive", "n − nan − zero − negative"),
      sparse(S::median, "median", "median", "middle of the sorted elements; of two the mean"),
      sparse(S::prod, "prod", "prod", "Π x"),
      sparse(S::p05, "p05", "quantiles", "5 % quantile, linear between neighbours"),
      sparse(S::p25, "p25", "quantiles", "25 % quantile"),
      sparse(S::p75, "p75", "quantiles", "75 % quantile"),
      sparse(S::p95, "p95", "quantiles", "95 % quantile"),
      sparse(S::delta_l2, "delta_l2", "delta", "‖x − y‖₂, y the value saved before"),
      sparse(S::delta_max_abs, "delta_max_abs", "delta", "max |x − y|"),
      sparse(S::delta_excess, "delta_excess", "delta_excess", "max (|x − y| − rtol·|x|)", {"rtol"}),
      sparse(S::prev_l2, "prev_l2", "delta", "‖y‖₂"),
      sparse(S::delta_from_step, "delta_from_step", "delta", "step at which y was saved"),
      sparse(S::unit_count, "unit_count", "units", "units", {"θ"}),
      sparse(S::unit_inactive_count, "unit_inactive_count", "units",
             "units active in fewer than θ % of the samples", {"θ"}),
      sparse(S::unit_saturated_count, "unit_saturated_count", "saturation",
             "units inside (lo, hi) in fewer than θ % of the samples", {"lo", "hi", "θ"}),
      sparse(S::abs_ge_count, "abs_ge_count", "at_least", "elements with |x| ≥ b", {"b"}),
      sparse(S::depth, "depth", "depth", "depth of a tree"),
      sparse(S::abs_min, "abs_min", "abs_min", "smallest |x|"),
      sparse(S::abs_median, "abs_median", "abs_median", "median of |x|"),
      sparse(S::abs_prod, "abs_prod", "abs_prod", "Π |x|"),
      sparse(S::first_bad_index, "first_bad_index", {},
             "index of the first NaN or infinity; sent by itself where there is one"),
      sparse(S::digest, "digest", "digest", "64-bit hash of type, shape and canonical bytes"),
      vector(V::channel_sum, "channel_sum", "channels", "Σ x per channel"),
      vector(V::channel_sumsq, "channel_sumsq", "channels", "Σ x² per channel"),
      vector(V::channel_count, "channel_count", "channels", "elements per channel"),
      vector(V::value_counts, "value_counts", "values", "occurrences of each value given", {"v…"}),
      vector(V::class_counts, "class_counts", "classes", "samples per class", {"θ?"}),
      vector(V::class_correct, "class_correct", "classes",
             "samples per class that were predicted right", {"θ?"}),
      vector(V::confusion, "confusion", "classes", "label, prediction and count, as triples",
             {"θ?"}),
      {1, "histogram", Form::histogram, "histogram", {}, "exponential histogram of scale 3"},
  };
}

/// How many numbers the word takes: from, to. One that ends with "?" may be left out.
std::pair<std::size_t, std::size_t> parameters_of(const Statistic& one) {
  if (!one.parameters.empty() && one.parameters.back().ends_with('?')) {
    return {one.parameters.size() - 1, one.parameters.size()};
  }
  const bool any = !one.parameters.empty() && one.parameters.back().ends_with("…");
  return {one.parameters.size(), any ? 64 : one.parameters.size()};
}

bool read_numbers(std::string_view text, std::vector<double>& out) {
  while (true) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    double number = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    if (error != std::errc()) return false;
    out.push_back(number);
    text = {end, static_cast<std::size_t>(last - end)};
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (text.empty()) return true;
    if (!text.starts_with(',')) return false;
    text.remove_prefix(1);
  }
}

}  // namespace

std::string_view to_string(StatisticForm form) noexcept {
  switch (form) {
    case Form::column:
      return "column";
    case Form::derived:
      return "derived";
    case Form::sparse:
      return "sparse";
    case Form::vector:
      return "vector";
    case Form::histogram:
      return "histogram";
  }
  return "unknown";
}

std::span<const Statistic> builtin_statistics() {
  static const std::vector<Statistic> kTable = table();
  return kTable;
}

std::vector<std::string> statistic_requests() {
  std::vector<std::string> words;
  for (const Statistic& one : builtin_statistics()) {
    if (one.request.empty() || std::find(words.begin(), words.end(), one.request) != words.end()) {
      continue;
    }
    words.emplace_back(one.request);
  }
  return words;
}

std::string to_text(const StatisticRequest& request) {
  std::string out = request.word;
  for (std::size_t i = 0; i < request.parameters.size(); ++i) {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), request.parameters[i]).ptr;
    out += i == 0 ? "(" : ", ";
    out.append(digits.data(), end);
  }
  return request.parameters.empty() ? out : out + ")";
}

Result<StatisticRequest> parse_statistic(std::string_view text) {
  StatisticRequest out;
  const std::size_t open = text.find('(');
  out.word = text.substr(0, open);
  const auto all = builtin_statistics();
  const auto known = std::find_if(all.begin(), all.end(), [&](const Statistic& one) {
    return !one.request.empty() && one.request == out.word;
  });
  if (known == all.end()) {
    const std::string near = nearest(out.word, statistic_requests());
    return invalid_argument("unknown statistic \"" + out.word + "\"" +
                            (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  const bool listed =
      open == std::string_view::npos
          ? true
          : text.ends_with(')') &&
                read_numbers(text.substr(open + 1, text.size() - open - 2), out.parameters);
  const auto [least, most] = parameters_of(*known);
  if (listed && out.parameters.size() >= least && out.parameters.size() <= most) return out;
  std::string shape = out.word;
  for (std::size_t i = 0; i < known->parameters.size(); ++i) {
    shape += (i == 0 ? "(" : ", ") + std::string(known->parameters[i]);
  }
  return invalid_argument("statistic " + std::string(text) + ": expected " + shape +
                          (known->parameters.empty() ? "" : ")"));
}

}  // namespace tocsin::core
