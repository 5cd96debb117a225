#include "app/api/name_routes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "app/api/series_asking.h"
#include "app/serve/problem.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;
using insights::FamilyKind;

constexpr std::int64_t kMostNames = 1000;
constexpr std::int64_t kUsualNames = 200;

const char* word_of(FamilyKind kind) {
  if (kind == FamilyKind::tensor) return "tensor";
  return kind == FamilyKind::clock ? "clock" : "scalar";
}

std::vector<FamilyKind> kinds_in(const UrlQuery& query) {
  const auto kind = query.value("kind");
  if (kind == "tensor") return {FamilyKind::tensor};
  if (kind == "clock") return {FamilyKind::clock};
  if (kind == "scalar") return {FamilyKind::scalar};
  return {FamilyKind::scalar, FamilyKind::clock};
}

struct FoundName {
  insights::NameLine name;
  insights::NameTally tally;
};

ValueList collections_of(const std::string& text) {
  ValueList out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

ValueMap value_of(insights::SeriesReader& reader, const insights::SeriesAsk& ask,
                  const FoundName& one) {
  const insights::FamilyLine* newest = nullptr;
  std::vector<std::string> modes;
  std::vector<std::string> workers;
  const auto note = [](std::vector<std::string>& all, std::string text) {
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
  };
  const auto families = reader.families(ask.run, one.name.kind, one.name.hash);
  for (const auto& family : families) {
    if (ask.mode && family.mode != *ask.mode) continue;
    if (newest == nullptr || family.incarnation > newest->incarnation) newest = &family;
    note(modes, std::string(core::to_string(family.mode)));
    note(workers, family.worker);
  }
  const auto last = newest == nullptr ? std::nullopt : reader.last(*newest, insights::kValueColumn);
  const auto& tally = one.tally;
  return ValueMap{
      {"name", one.name.text},
      {"kind", word_of(one.name.kind)},
      {"role", std::string(core::to_string(one.name.role))},
      {"unit", one.name.unit.empty() ? Value() : Value(one.name.unit)},
      {"direction",
       one.name.direction == 0 ? Value() : Value(one.name.direction < 0 ? "min" : "max")},
      {"shape", one.name.shape.empty() ? Value() : Value(one.name.shape)},
      {"collections", collections_of(one.name.collections)},
      {"modes", ValueList(modes.begin(), modes.end())},
      {"workers", static_cast<std::int64_t>(workers.size())},
      {"stored", tally.stored},
      {"first_step", tally.x_first},
      {"last_step", newest == nullptr ? tally.x_last : newest->x_last},
      {"last", last ? Value(*last) : Value()},
      {"worst", tally.worst ? Value(*tally.worst) : Value()},
      {"first_bad_step", tally.bad_x ? Value(*tally.bad_x) : Value()}};
}

// What was not finite by its step, then by the greatest magnitude.
void put_worst_first(std::vector<FoundName>& names) {
  const auto grade = [](const FoundName& one) {
    return std::tuple(one.tally.bad_x.value_or(std::numeric_limits<std::int64_t>::max()),
                      -one.tally.worst.value_or(-1), one.name.order);
  };
  std::sort(names.begin(), names.end(),
            [&](const auto& a, const auto& b) { return grade(a) < grade(b); });
}

core::Result<std::vector<FoundName>> find_names(insights::SeriesReader& reader,
                                                const insights::SeriesAsk& ask) {
  const auto fits = insights::name_test("name", ask.name);
  if (!fits) return fits.error();
  const auto fits_worker = insights::name_test("worker", ask.worker);
  if (!fits_worker) return fits_worker.error();
  std::vector<FoundName> out;
  for (const FamilyKind kind : ask.kinds) {
    const auto tallies = reader.tallies(ask.run, kind, ask.mode);
    const std::array one{kind};
    for (insights::NameLine& line : reader.names(ask.run, one)) {
      const auto tally = tallies.find(line.hash);
      if (tally == tallies.end() || !(*fits)(line.text)) continue;
      if (ask.worker != ".*") {
        const auto all = reader.families(ask.run, kind, line.hash);
        if (std::none_of(all.begin(), all.end(), [&](const auto& family) {
              return (!ask.mode || family.mode == *ask.mode) && (*fits_worker)(family.worker);
            }))
          continue;
      }
      out.push_back({std::move(line), tally->second});
    }
  }
  return out;
}

HttpAnswer list_names(ApiDesk& desk, const ApiCall& call) {
  insights::SeriesAsk ask;
  ask.kinds = kinds_in(call.query);
  ask.name = std::string(call.query.value("name").value_or(".*"));
  ask.worker = std::string(call.query.value("worker").value_or(".*"));
  if (const auto mode = call.query.value("mode")) ask.mode = core::mode_from(*mode);
  HttpAnswer refusal;
  const auto reader = series_of_run(desk, call, ask.run, refusal);
  if (!reader) return refusal;
  auto found = find_names(*reader, ask);
  if (!found) return refused_ask(found.error());
  if (call.query.value("sort") == "worst") put_worst_first(*found);
  const auto limit = static_cast<std::size_t>(number_in(call.query, "limit", kUsualNames));
  ValueList items;
  for (const FoundName& one : *found) {
    if (items.size() < limit) items.emplace_back(value_of(*reader, ask, one));
  }
  const insights::RunGaps gaps = reader->gaps(ask.run);
  if (const auto status = reader->failure(); !status) return problem(status.error());
  return {200, core::to_json(ValueMap{{"items", std::move(items)},
                                      {"total", static_cast<std::int64_t>(found->size())},
                                      {"refused", gaps.refused},
                                      {"tensors_gone", gaps.tensors_gone},
                                      {"as_of", core::to_rfc3339(desk.clock.now())}}) +
                   "\n"};
}

}  // namespace

std::vector<ApiRoute> name_routes(ApiDesk& desk) {
  std::vector<ApiParameter> names = selecting_parameters();
  ApiParameter kind{"kind", ParameterType::choice, "scalar and clock if not given"};
  kind.choices = {"scalar", "clock", "tensor"};
  names.push_back(kind);
  ApiParameter sort{"sort", ParameterType::choice, "appearance if not given"};
  sort.choices = {"appearance", "worst"};
  names.push_back(sort);
  names.push_back(integer_parameter("limit", "at most so many; 200 if not given", 1, kMostNames));
  return {{"GET",
           "/api/v1/runs/{run}/names",
           ApiRole::viewer,
           "List names of a run's series, in the order of their appearance",
           [&desk](const ApiCall& call) { return list_names(desk, call); },
           std::move(names),
           {},
           {{200, "the names", "SeriesNames"}}}};
}

}  // namespace tocsin::app
