#include "rules/declared/words.h"

#include <array>
#include <utility>

#include "core/statistics.h"
#include "core/text.h"

namespace tocsin::rules::declared {
namespace {

using From = Selector::Source;

struct FieldName {
  std::string_view name;
  Field field;
  bool scalar = false;  // also of a logged number
};
constexpr std::array<FieldName, 23> kOfTensors{{{"count", Field::count},
                                                {"sum", Field::sum},
                                                {"sumsq", Field::sumsq},
                                                {"m2", Field::m2},
                                                {"abs_sum", Field::abs_sum},
                                                {"min", Field::min},
                                                {"max", Field::max},
                                                {"nan", Field::nan, true},
                                                {"posinf", Field::posinf, true},
                                                {"neginf", Field::neginf, true},
                                                {"zero", Field::zero},
                                                {"negative", Field::negative},
                                                {"mean", Field::mean},
                                                {"abs_mean", Field::abs_mean},
                                                {"l1", Field::l1},
                                                {"l2", Field::l2},
                                                {"variance", Field::variance},
                                                {"std", Field::std},
                                                {"abs_max", Field::abs_max},
                                                {"positive", Field::positive},
                                                {"abs_variance", Field::abs_variance},
                                                {"abs_std", Field::abs_std},
                                                {"world_size", Field::world_size, true}}};

bool timed(From source) { return source == From::step || source == From::span; }
bool tensors(From source) { return source == From::tensor || source == From::collection; }

// A digest is bits, not a number.
bool spoken_of(const core::Statistic& one) {
  return one.form == core::StatisticForm::sparse && one.name != "digest" &&
         one.name.find('(') == std::string_view::npos;
}

std::vector<std::string> names_of(From source) {
  std::vector<std::string> out;
  if (!tensors(source)) out.emplace_back(timed(source) ? "duration" : "value");
  if (source == From::span) out.emplace_back("count");
  if (source != From::system) out.insert(out.end(), {"step", "epoch"});
  for (const FieldName& one : kOfTensors) {
    const bool there = tensors(source) || (source == From::metric && one.scalar) ||
                       (timed(source) && one.field == Field::world_size);
    if (there) out.emplace_back(one.name);
  }
  if (!tensors(source)) return out;
  for (const core::Statistic& one : core::builtin_statistics()) {
    if (spoken_of(one)) out.emplace_back(one.name);
  }
  return out;
}

constexpr std::array<std::pair<std::string_view, Op>, 6> kSimple{{{"abs", Op::absolute},
                                                                  {"log10", Op::log10},
                                                                  {"sqrt", Op::sqrt},
                                                                  {"min2", Op::least},
                                                                  {"max2", Op::greatest},
                                                                  {"finite", Op::finite}}};

constexpr std::array<std::pair<std::string_view, Op>, 12> kOperators{{{"and", Op::both},
                                                                      {"or", Op::either},
                                                                      {"<", Op::less},
                                                                      {"<=", Op::less_equal},
                                                                      {">", Op::greater},
                                                                      {">=", Op::greater_equal},
                                                                      {"==", Op::equal},
                                                                      {"!=", Op::not_equal},
                                                                      {"+", Op::add},
                                                                      {"-", Op::subtract},
                                                                      {"*", Op::multiply},
                                                                      {"/", Op::divide}}};

constexpr std::array<std::pair<std::string_view, Kind>, 18> kKinds{
    {{"count", Kind::count},
     {"sum", Kind::sum},
     {"mean", Kind::mean},
     {"min", Kind::min},
     {"max", Kind::max},
     {"std", Kind::std},
     {"first", Kind::first},
     {"last", Kind::last},
     {"delta", Kind::delta},
     {"rate", Kind::rate},
     {"slope", Kind::slope},
     {"quantile", Kind::quantile},
     {"median", Kind::quantile},
     {"ewma", Kind::ewma},
     {"zscore", Kind::zscore},
     {"steps_since_min", Kind::steps_since_min},
     {"steps_since_max", Kind::steps_since_max},
     {"prev", Kind::prev}}};

constexpr std::array<std::pair<std::string_view, Formula::Fold::Kind>, 6> kFolds{
    {{"min", Formula::Fold::Kind::min},
     {"max", Formula::Fold::Kind::max},
     {"mean", Formula::Fold::Kind::mean},
     {"std", Formula::Fold::Kind::std},
     {"spread", Formula::Fold::Kind::spread},
     {"count", Formula::Fold::Kind::count}}};

template <typename Table>
auto looked_up(const Table& table, std::string_view name)
    -> std::optional<decltype(table.front().second)> {
  for (const auto& [known, value] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace

namespace {

// Fields of points that are not tensors; nullopt: it is none of these.
std::optional<Field> field_of_point(std::string_view name, From source) {
  if (name == "value" && (source == From::metric || source == From::system)) return Field::value;
  if (name == "duration" && timed(source)) return Field::duration;
  if (name == "count" && source == From::span) return Field::count;
  if (name == "step" && source != From::system) return Field::step;
  if (name == "epoch" && source != From::system) return Field::epoch;
  return std::nullopt;
}

bool has_field(From source, const FieldName& one) {
  return tensors(source) || (source == From::metric && one.scalar) ||
         (timed(source) && one.field == Field::world_size);
}

}  // namespace

std::optional<std::uint16_t> field_named(std::string_view name, From source) {
  if (const auto field = field_of_point(name, source)) return static_cast<std::uint16_t>(*field);
  for (const FieldName& one : kOfTensors) {
    if (one.name == name && has_field(source, one)) return static_cast<std::uint16_t>(one.field);
  }
  if (!tensors(source)) return std::nullopt;
  for (const core::Statistic& one : core::builtin_statistics()) {
    if (spoken_of(one) && one.name == name) return static_cast<std::uint16_t>(kSent + one.id);
  }
  return std::nullopt;
}

std::string unknown_name(std::string_view name, From source,
                         const std::vector<std::string>& labels) {
  if (name == "value" && tensors(source)) {
    return "a tensor has many values: name a statistic, mean or l2 for instance";
  }
  for (const auto& function : function_names()) {
    if (function == name) return std::string(name) + " is a function: write " + function + "(x)";
  }
  std::vector<std::string> names = names_of(source);
  names.insert(names.end(), labels.begin(), labels.end());
  const std::string near = core::nearest(name, names);
  return "unknown name " + std::string(name) +
         (near.empty() ? "; known: " + listed(names) : "; did you mean " + near + "?");
}

std::string unknown_function(std::string_view name) {
  // What other languages call them; no misspelling leads there.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kElsewhere{
      {{"avg", "mean"},
       {"average", "mean"},
       {"stddev", "std"},
       {"stdev", "std"},
       {"percentile", "quantile"},
       {"ema", "ewma"},
       {"log", "log10"},
       {"derivative", "slope"},
       {"diff", "delta"},
       {"lag", "prev"},
       {"isnan", "not finite"},
       {"is_nan", "not finite"},
       {"isfinite", "finite"}}};
  const auto elsewhere = looked_up(kElsewhere, name);
  const std::string near =
      elsewhere ? std::string(*elsewhere) : core::nearest(name, function_names());
  return "unknown function " + std::string(name) +
         (near.empty() ? "; known: " + listed(function_names()) : "; did you mean " + near + "?");
}

std::string_view example_of(From source) {
  if (tensors(source)) return "l2";
  return timed(source) ? "duration" : "value";
}

Op operator_named(std::string_view text) { return looked_up(kOperators, text).value_or(Op::add); }
std::optional<Op> simple_named(std::string_view name) { return looked_up(kSimple, name); }
std::optional<Kind> kind_named(std::string_view name) { return looked_up(kKinds, name); }
std::optional<Formula::Fold::Kind> fold_named(std::string_view name) {
  return looked_up(kFolds, name);
}

const std::vector<std::string>& fold_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out;
    out.reserve(kFolds.size());
    for (const auto& [name, kind] : kFolds) out.emplace_back(name);
    return out;
  }();
  return kNames;
}

const std::vector<std::string>& function_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out{"across", "argmax_worker", "fired", "if", "other", "previous"};
    for (const auto& [name, op] : kSimple) out.emplace_back(name);
    for (const auto& [name, kind] : kKinds) out.emplace_back(name);
    return out;
  }();
  return kNames;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  }
  return out;
}

}  // namespace tocsin::rules::declared
