#include "insights/series/heat_query.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tocsin::insights {
namespace {

constexpr std::size_t kMostTensorsRead = 20'000;
constexpr std::int64_t kMostRowsRead = 3'000'000;  // beyond it columns are as wide as kept buckets

// Train, else the mode with most values.
std::optional<core::Mode> usual_mode(const std::map<core::Mode, std::int64_t>& stored) {
  if (stored.contains(core::Mode::train)) return core::Mode::train;
  std::optional<core::Mode> out;
  for (const auto& one : stored) {
    if (!out || one.second > stored.at(*out)) out = one.first;
  }
  return out;
}

// What is worst comes first: what was not finite by its step, then by the greatest magnitude.
void order_by_value(SeriesReader& reader, const HeatAsk& ask, std::vector<NamedFamilies>& tensors,
                    std::optional<core::Mode> mode) {
  const auto tallies = reader.tallies(ask.of.run, FamilyKind::tensor, mode);
  const auto grade = [&](const NamedFamilies& one) {
    const auto found = tallies.find(one.name.hash);
    const NameTally tally = found == tallies.end() ? NameTally{} : found->second;
    return std::tuple(tally.bad_x.value_or(std::numeric_limits<std::int64_t>::max()),
                      -tally.worst.value_or(-1), one.name.order);
  };
  std::sort(tensors.begin(), tensors.end(),
            [&](const auto& a, const auto& b) { return grade(a) < grade(b); });
}

void put_in_order(SeriesReader& reader, const HeatAsk& ask, TensorChoice& chosen) {
  if (ask.order == HeatOrder::value) order_by_value(reader, ask, chosen.tensors, chosen.mode);
  if (ask.order == HeatOrder::name)
    std::sort(chosen.tensors.begin(), chosen.tensors.end(),
              [](const auto& a, const auto& b) { return a.name.text < b.name.text; });
}

// Columns are not narrower than the tensors' densest grid of steps.
std::int64_t level_of_stride(const std::vector<NamedFamilies>& tensors) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const NamedFamilies& one : tensors) {
    for (const FamilyLine& family : one.families) {
      if (family.rows < 2) continue;
      least = std::min(least, (family.x_last - family.x_first) / (family.rows - 1));
    }
  }
  if (least == std::numeric_limits<std::int64_t>::max()) return 0;
  std::int64_t level = 0;
  while (least >> (level + 1) > 0) ++level;
  return level;
}

void set_heat_range(const HeatAsk& ask, const std::vector<NamedFamilies>& tensors,
                    HeatAnswer& out) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  std::int64_t rolled = 0;  // the level of the widest of the lowest buckets that are kept
  for (const NamedFamilies& one : tensors) {
    for (const FamilyLine& family : one.families) {
      first = std::min(first, family.x_first);
      end = std::max(end, family.x_last + 1);
      rolled = std::max(rolled, family.k0);
    }
  }
  if (end == 0) first = 0;
  out.from = ask.from.value_or(first);
  out.to = std::max(out.from + 1, ask.to.value_or(end));
  out.level = std::max(level_of(out.from, out.to, ask.columns), level_of_stride(tensors));
  std::int64_t rows = 0;
  for (const NamedFamilies& one : tensors) {
    for (const FamilyLine& family : one.families) {
      const std::int64_t inside =
          std::min(out.to, family.x_last + 1) - std::max(out.from, family.x_first);
      rows += std::clamp(inside, std::int64_t{0}, family.rows);
    }
  }
  if (rows > kMostRowsRead) out.level = std::max(out.level, rolled);
  const std::int64_t width = std::int64_t{1} << out.level;
  out.from = out.from / width * width;
  out.to = (out.to + width - 1) / width * width;
}

void add_tensor(SeriesReader& reader, const NamedFamilies& one, const HeatAsk& ask,
                const HeatAnswer& range, std::vector<Bucket>& cells) {
  const std::int64_t first = range.from >> range.level;
  for (const Stretch& part : stretches(one.families)) {
    if (part.superseded) continue;
    const std::int64_t lo = std::max(part.lo, range.from);
    const std::int64_t hi = std::min(part.hi, range.to);
    if (lo >= hi) continue;
    reader.visit_buckets(part.family, ask.column, lo, hi, range.level,
                         [&](std::int64_t at, const Bucket& some) {
                           cells[static_cast<std::size_t>(at - first)].append(some);
                         });
  }
}

}  // namespace

HeatRow row_of_cells(const std::vector<Bucket>& cells, HeatValue how) {
  HeatRow out;
  out.cells.reserve(cells.size());
  for (std::size_t at = 0; at < cells.size(); ++at) {
    const Bucket& cell = cells[at];
    const double value = how == HeatValue::min   ? cell.min
                         : how == HeatValue::max ? cell.max
                                                 : cell.sum / std::max(1U, cell.n);
    out.cells.push_back(cell.n == 0 ? std::nullopt : std::optional<double>(value));
    if (cell.bad() > 0)
      out.bad.push_back(
          {static_cast<std::int64_t>(at), cell.nan, cell.posinf, cell.neginf, cell.bad_x});
  }
  return out;
}

core::Result<TensorChoice> choose_tensors(SeriesReader& reader, const TensorAsk& ask) {
  auto fits_name = name_test("name", ask.name);
  if (!fits_name) return fits_name.error();
  auto fits_worker = name_test("worker", ask.worker);
  if (!fits_worker) return fits_worker.error();
  constexpr FamilyKind kKind[] = {FamilyKind::tensor};
  std::vector<NamedFamilies> all;
  std::unordered_map<std::int64_t, std::size_t> place;
  for (NameLine& line : reader.names(ask.run, kKind)) {
    if (!(*fits_name)(line.text)) continue;
    place.emplace(line.hash, all.size());
    all.push_back({std::move(line), {}});
  }
  std::map<core::Mode, std::int64_t> stored;
  std::unordered_map<std::string, bool> workers;
  reader.all_families(ask.run, FamilyKind::tensor, [&](std::int64_t name, FamilyLine&& family) {
    const auto at = place.find(name);
    if (at == place.end()) return;
    const auto [worker, fresh] = workers.try_emplace(family.worker, false);
    if (fresh) worker->second = (*fits_worker)(family.worker);
    if (!worker->second) return;
    stored[family.mode] += family.rows;
    if (!ask.mode || family.mode == *ask.mode)
      all[at->second].families.push_back(std::move(family));
  });
  TensorChoice out;
  out.mode = ask.mode ? ask.mode : usual_mode(stored);
  for (const auto& one : stored) out.modes.push_back(one.first);
  for (NamedFamilies& one : all) {
    std::erase_if(one.families, [&](const FamilyLine& family) { return family.mode != out.mode; });
    if (!one.families.empty()) out.tensors.push_back(std::move(one));
  }
  return out;
}

core::Result<HeatAnswer> ask_heat(SeriesReader& reader, const HeatAsk& ask) {
  auto chosen = choose_tensors(reader, ask.of);
  if (!chosen) return chosen.error();
  HeatAnswer out;
  out.mode = chosen->mode;
  out.modes = chosen->modes;
  out.tensors = static_cast<std::int64_t>(chosen->tensors.size());
  put_in_order(reader, ask, *chosen);
  if (chosen->tensors.size() > kMostTensorsRead) {
    out.left_out = out.tensors - static_cast<std::int64_t>(kMostTensorsRead);
    chosen->tensors.resize(kMostTensorsRead);
  }
  set_heat_range(ask, chosen->tensors, out);
  const auto most = static_cast<std::size_t>(ask.rows);
  const std::size_t fold = std::max<std::size_t>(1, (chosen->tensors.size() + most - 1) / most);
  std::vector<Bucket> cells(static_cast<std::size_t>((out.to - out.from) >> out.level));
  for (std::size_t at = 0; at < chosen->tensors.size(); at += fold) {
    const std::size_t end = std::min(at + fold, chosen->tensors.size());
    std::fill(cells.begin(), cells.end(), Bucket());
    for (std::size_t one = at; one < end; ++one)
      add_tensor(reader, chosen->tensors[one], ask, out, cells);
    HeatRow row = row_of_cells(cells, ask.value);
    row.first = chosen->tensors[at].name;
    row.last = chosen->tensors[end - 1].name;
    row.folded = static_cast<std::int64_t>(end - at);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tocsin::insights
