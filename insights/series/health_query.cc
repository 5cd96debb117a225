#include "insights/series/health_query.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace tocsin::insights {
namespace {

constexpr std::int64_t kUsualSteps = 200;  // before the step, of which the median is taken

std::int64_t whole(double count) { return std::llround(count); }

constexpr std::uint64_t bit(std::size_t column) { return std::uint64_t{1} << column; }
constexpr std::uint64_t kWantedOfHealth = bit(tensor_column::l2) | bit(tensor_column::zero) |
                                          bit(tensor_column::negative) | bit(tensor_column::nan) |
                                          bit(tensor_column::posinf) | bit(tensor_column::neginf) |
                                          bit(tensor_column::count);

struct TensorAtStep {
  std::int64_t step = 0;
  std::array<double, tensor_column::columns> row{};
};

// The newest row at or before the step; and the sizes before the step: it shall not be usual to itself.
std::optional<TensorAtStep> look_at(SeriesReader& reader, const FamilyLine& family,
                                    std::int64_t step, std::int64_t last,
                                    std::vector<double>& usual) {
  std::optional<TensorAtStep> out;
  const std::int64_t lo = std::max(family.x_first, std::min(last - kUsualSteps, family.x_chunked));
  const auto look = [&](const SeriesRows& rows) {
    for (std::size_t at = 0; at < rows.size() && rows.x[at] <= last; ++at) {
      const double size = rows.columns[tensor_column::l2][at];
      if (rows.x[at] >= step - kUsualSteps && rows.x[at] < step && std::isfinite(size))
        usual.push_back(size);
      if (at + 1 < rows.size() && rows.x[at + 1] <= last) continue;
      out.emplace().step = rows.x[at];
      for (std::size_t k = 0; k < tensor_column::columns; ++k) {
        if (!rows.columns[k].empty()) out->row[k] = rows.columns[k][at];
      }
    }
  };
  reader.rows(family, lo, last + 1, look, kWantedOfHealth);
  return out;
}

void add_elements(const std::array<double, tensor_column::columns>& row, HealthLine& out) {
  using namespace tensor_column;
  const double elements = row[count];
  const std::int64_t below = whole(row[negative] * elements);
  const std::int64_t none = whole(row[zero] * elements);
  const std::int64_t low = whole(row[neginf]);
  const std::int64_t high = whole(row[posinf]);
  const std::int64_t missing = whole(row[nan]);
  out.elements += whole(elements);
  out.neginf += low;
  out.negative += below - low;
  out.zero += none;
  out.posinf += high;
  out.nan += missing;
  out.positive += whole(elements) - missing - none - below - high;
}

std::optional<HealthLine> line_at(SeriesReader& reader, const NamedFamilies& one,
                                  std::int64_t step) {
  std::map<std::string, Stretch> of;  // by worker: the part that the step lies in or behind
  for (const Stretch& part : stretches(one.families)) {
    if (!part.superseded && part.lo <= step) of.insert_or_assign(part.family.worker, part);
  }
  HealthLine out;
  out.name = one.name;
  std::vector<double> usual;
  bool any = false;
  for (const auto& entry : of) {
    const std::int64_t last = std::min(step, entry.second.hi - 1);
    const auto found = look_at(reader, entry.second.family, step, last, usual);
    if (!found) continue;
    any = true;
    add_elements(found->row, out);
    out.step = std::max(out.step, found->step);
    const double size = found->row[tensor_column::l2];
    if (!(out.l2 > size)) out.l2 = size;  // NaN is greater than all
  }
  for (const FamilyLine& family : one.families) {
    if (family.bad_x >= 0) out.bad_at = std::min(out.bad_at.value_or(family.bad_x), family.bad_x);
  }
  if (!usual.empty()) {
    const auto middle = usual.begin() + static_cast<std::ptrdiff_t>(usual.size() / 2);
    std::nth_element(usual.begin(), middle, usual.end());
    out.usual_l2 = *middle;
  }
  return any ? std::optional<HealthLine>(std::move(out)) : std::nullopt;
}

struct Suspect {
  const NameLine* name = nullptr;
  core::Mode mode = core::Mode::global;
  std::int64_t step = 0;
};

// Backward goes from the output to the input.
bool before(const Suspect& a, const Suspect& b) {
  const auto grade = [](const Suspect& one) {
    const bool back = one.name->role == core::Role::gradient;
    return std::tuple(one.step, phase_of(one.name->role),
                      back ? -one.name->order : one.name->order);
  };
  return grade(a) < grade(b);
}

// Losses are numbers, not tensors, and stand between forward and backward.
std::vector<NamedFamilies> losses(SeriesReader& reader, const TensorAsk& ask,
                                  std::optional<core::Mode> mode) {
  std::vector<NamedFamilies> out;
  constexpr std::array kKind{FamilyKind::scalar};
  for (NameLine& line : reader.names(ask.run, kKind)) {
    if (line.role != core::Role::loss) continue;
    auto families = reader.families(ask.run, FamilyKind::scalar, line.hash);
    std::erase_if(families, [&](const FamilyLine& one) { return one.mode != mode; });
    out.push_back({std::move(line), std::move(families)});
  }
  return out;
}

std::optional<FirstBad> first_bad(const std::vector<NamedFamilies>& tensors,
                                  const std::vector<NamedFamilies>& losses) {
  std::optional<Suspect> first;
  for (const auto* list : {&tensors, &losses}) {
    for (const NamedFamilies& one : *list) {
      for (const FamilyLine& family : one.families) {
        const Suspect suspect{&one.name, family.mode, family.bad_x};
        if (family.bad_x >= 0 && (!first || before(suspect, *first))) first = suspect;
      }
    }
  }
  if (!first) return std::nullopt;
  return FirstBad{*first->name, first->mode, first->step};
}

// From which step on all are there that began before `step` and have lost that one; 0: none has.
std::int64_t rows_from(const std::vector<NamedFamilies>& all, std::int64_t step) {
  std::int64_t out = 0;
  for (const NamedFamilies& one : all) {
    for (const FamilyLine& family : one.families) {
      if (family.x_first <= step && family.rows_gone(step))
        out = std::max(out, family.kept_from[kRowsPart]);
    }
  }
  return out;
}

}  // namespace

int phase_of(core::Role role) {
  switch (role) {
    case core::Role::weight:
    case core::Role::bias:
      return 0;  // as they were before the step's update: what it did shows one step later
    case core::Role::input:
    case core::Role::label:
      return 1;
    case core::Role::activation_in:
    case core::Role::activation_out:
      return 2;
    case core::Role::output:
    case core::Role::prediction:
      return 3;
    case core::Role::loss:
      return 4;
    case core::Role::gradient:
      return 5;
    case core::Role::optimizer:
      return 6;
    default:
      return 7;
  }
}

core::Result<HealthAnswer> ask_health(SeriesReader& reader, const HealthAsk& ask) {
  auto chosen = choose_tensors(reader, ask.of);
  if (!chosen) return chosen.error();
  HealthAnswer out;
  out.mode = chosen->mode;
  out.tensors = static_cast<std::int64_t>(chosen->tensors.size());
  out.first_bad = first_bad(chosen->tensors, losses(reader, ask.of, out.mode));
  out.step = ask.step;
  if (!out.step && out.first_bad) out.step = out.first_bad->step;
  for (const NamedFamilies& one : chosen->tensors) {
    if (ask.step || out.first_bad) break;
    for (const FamilyLine& family : one.families)
      out.step = std::max(out.step.value_or(0), family.x_last);
  }
  if (!out.step) return out;
  if (chosen->tensors.size() > ask.most) {
    const auto good = [](const NamedFamilies& one) {
      return std::none_of(one.families.begin(), one.families.end(),
                          [](const FamilyLine& family) { return family.bad_x >= 0; });
    };
    std::stable_partition(chosen->tensors.begin(), chosen->tensors.end(),
                          [&](const NamedFamilies& one) { return !good(one); });
    chosen->tensors.resize(ask.most);
    std::sort(chosen->tensors.begin(), chosen->tensors.end(),
              [](const auto& a, const auto& b) { return a.name.order < b.name.order; });
  }
  for (const NamedFamilies& one : chosen->tensors) {
    if (auto line = line_at(reader, one, *out.step)) out.lines.push_back(std::move(*line));
  }
  out.rows_from = rows_from(chosen->tensors, *out.step);
  return out;
}

}  // namespace tocsin::insights
