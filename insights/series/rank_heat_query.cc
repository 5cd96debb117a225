#include "insights/series/rank_heat_query.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "insights/series/step_grid.h"

namespace tocsin::insights {
namespace {

// What a rank has, name by name; it is called as its newest client is.
struct RankFamilies {
  std::string worker;
  std::int64_t incarnation = -1;
  std::vector<std::vector<FamilyLine>> names;
};

std::map<std::int64_t, RankFamilies> families_by_rank(std::vector<NamedFamilies>&& all) {
  std::map<std::int64_t, RankFamilies> out;
  for (NamedFamilies& one : all) {
    std::map<std::int64_t, std::vector<FamilyLine>> ranks;
    for (FamilyLine& family : one.families) {
      const std::int64_t rank = family.rank;
      RankFamilies& of = out[rank];
      if (family.incarnation >= of.incarnation) {
        of.incarnation = family.incarnation;
        of.worker = family.worker;
      }
      ranks[rank].push_back(std::move(family));
    }
    for (auto& [rank, families] : ranks) out[rank].names.push_back(std::move(families));
  }
  return out;
}

}  // namespace

core::Result<RankHeat> ask_rank_heat(SeriesReader& reader, const RankHeatAsk& ask) {
  constexpr FamilyKind kNumbers[] = {FamilyKind::scalar, FamilyKind::clock};
  constexpr FamilyKind kTensors[] = {FamilyKind::tensor};
  auto chosen = ask.statistic ? choose_families(reader, ask.of, kTensors)
                              : choose_families(reader, ask.of, kNumbers);
  if (!chosen) return chosen.error();
  RankHeat out;
  out.grid.mode = chosen->mode;
  out.grid.modes = chosen->modes;
  out.grid.tensors = static_cast<std::int64_t>(chosen->tensors.size());
  const StepGrid grid = grid_of_steps({ask.from, ask.to, ask.columns}, chosen->tensors);
  out.grid.level = grid.level;
  out.grid.from = grid.from;
  out.grid.to = grid.to;
  const auto ranks = families_by_rank(std::move(chosen->tensors));
  out.count = static_cast<std::int64_t>(ranks.size());
  const std::int64_t fold = std::max<std::int64_t>(1, (out.count + ask.rows - 1) / ask.rows);
  const std::size_t column = ask.statistic.value_or(kValueColumn);
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    std::vector<Bucket> cells(grid.columns());
    NameLine first;
    NameLine last;
    first.text = rank->second.worker;
    out.ranks.push_back(rank->first);
    std::int64_t folded = 0;
    for (; folded < fold && rank != ranks.end(); ++folded, ++rank) {
      last.text = rank->second.worker;
      for (const auto& families : rank->second.names)
        add_cells(reader, families, column, grid, cells);
    }
    HeatRow row = row_of_cells(cells, ask.value);
    row.first = std::move(first);
    row.last = std::move(last);
    row.folded = folded;
    out.grid.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tocsin::insights
