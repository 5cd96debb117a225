#include "insights/series/heat_query.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "insights/series/step_grid.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kMostTensorsRead = 20'000;

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
  constexpr FamilyKind kKind[] = {FamilyKind::tensor};
  return choose_families(reader, ask, kKind);
}

core::Result<TensorChoice> choose_families(SeriesReader& reader, const TensorAsk& ask,
                                           std::span<const FamilyKind> kinds) {
  auto fits_name = name_test("name", ask.name);
  if (!fits_name) return fits_name.error();
  auto fits_worker = name_test("worker", ask.worker);
  if (!fits_worker) return fits_worker.error();
  std::vector<NamedFamilies> all;
  std::map<std::pair<FamilyKind, std::int64_t>, std::size_t> place;
  for (NameLine& line : reader.names(ask.run, kinds)) {
    if (!(*fits_name)(line.text)) continue;
    place.emplace(std::pair(line.kind, line.hash), all.size());
    all.push_back({std::move(line), {}});
  }
  std::map<core::Mode, std::int64_t> stored;
  std::unordered_map<std::string, bool> workers;
  const auto take = [&](std::int64_t name, FamilyLine&& family) {
    const auto at = place.find({family.kind, name});
    if (at == place.end()) return;
    const auto [worker, fresh] = workers.try_emplace(family.worker, false);
    if (fresh) worker->second = (*fits_worker)(family.worker);
    if (!worker->second) return;
    stored[family.mode] += family.rows;
    if (!ask.mode || family.mode == *ask.mode)
      all[at->second].families.push_back(std::move(family));
  };
  for (const FamilyKind kind : kinds) reader.all_families(ask.run, kind, take);
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
  const StepGrid grid = grid_of_steps({ask.from, ask.to, ask.columns}, chosen->tensors);
  out.level = grid.level;
  out.from = grid.from;
  out.to = grid.to;
  const auto most = static_cast<std::size_t>(ask.rows);
  const std::size_t fold = std::max<std::size_t>(1, (chosen->tensors.size() + most - 1) / most);
  std::vector<Bucket> cells(grid.columns());
  for (std::size_t at = 0; at < chosen->tensors.size(); at += fold) {
    const std::size_t end = std::min(at + fold, chosen->tensors.size());
    std::fill(cells.begin(), cells.end(), Bucket());
    for (std::size_t one = at; one < end; ++one)
      add_cells(reader, chosen->tensors[one].families, ask.column, grid, cells);
    HeatRow row = row_of_cells(cells, ask.value);
    row.first = chosen->tensors[at].name;
    row.last = chosen->tensors[end - 1].name;
    row.folded = static_cast<std::int64_t>(end - at);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tocsin::insights
