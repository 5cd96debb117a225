#include "app/api/view_routes.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "app/serve/problem.h"
#include "core/fields/chart_view.h"
#include "core/json.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostOfAViewRequest = std::size_t{64} << 10;
constexpr std::size_t kMostViewsOfAnOwner = 200;
constexpr auto kViewReadBack = 5s;  // until what was written stands in our own view

// Whoever has a name: of a token, of the session that it began, or as the proxy says.
core::Status has_signed_in(const Principal& who) {
  if (who.by == KnownBy::token || who.by == KnownBy::session || who.by == KnownBy::proxy)
    return core::ok();
  return core::Error{
      core::Code::failed_precondition,
      "nobody has signed in, so nobody's charts are kept here; the page keeps them in "
      "the browser"};
}

const std::string& job_of_view(const ApiCall& call) {
  return call.request.in_path.find("job")->second;
}

ValueMap view_value(const core::ChartView& view) {
  ValueList charts;
  for (const std::string& name : view.charts) charts.emplace_back(name);
  const bool any = !view.charts.empty();
  return {{"job", view.job},
          {"owner", view.owner},
          {"charts", std::move(charts)},
          {"at", any ? Value(core::to_rfc3339(view.at)) : Value()}};
}

HttpAnswer get_view(ApiDesk& desk, const ApiCall& call) {
  if (const auto known = has_signed_in(call.who); !known) return problem(known.error());
  core::ChartView out;
  out.owner = call.who.name;
  out.job = job_of_view(call);
  const auto seen = desk.view.read([&](const TopicView& /*view*/) {
    const auto& all = desk.charts.views();
    const auto found = all.find(core::view_id(out.owner, out.job));
    if (found != all.end()) out = found->second;
  });
  if (!seen) return problem(seen.error());
  return {200, core::to_json(view_value(out)) + "\n"};
}

// {"charts": […]}
core::Result<std::vector<std::string>> read_charts(std::string_view json) {
  const auto body = core::parse_json(json, kMostOfAViewRequest);
  if (!body) return body.error();
  const auto* members = core::as<ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  for (const auto& member : *members) {
    if (member.first == "charts") continue;
    const std::string near = core::nearest(member.first, {"charts"});
    return core::invalid_argument("unknown field \"" + core::visible(member.first, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  const Value* given = core::find(*body, "charts");
  const auto* names = given == nullptr ? nullptr : core::as<ValueList>(given);
  if (names == nullptr) return core::invalid_argument("charts: expected a list of names");
  std::vector<std::string> out;
  for (const Value& one : *names) {
    const auto* name = core::as<std::string>(&one);
    if (name == nullptr) return core::invalid_argument("charts: expected a list of names");
    if (std::find(out.begin(), out.end(), *name) == out.end()) out.push_back(*name);
  }
  return out;
}

HttpAnswer put_view(ApiDesk& desk, const ApiCall& call) {
  if (const auto known = has_signed_in(call.who); !known) return problem(known.error());
  auto charts = read_charts(call.request.body);
  if (!charts) return problem(charts.error());
  core::ChartView wished;
  wished.owner = call.who.name;
  wished.job = job_of_view(call);
  wished.id = core::view_id(wished.owner, wished.job);
  wished.charts = std::move(*charts);
  wished.at = desk.clock.now();
  if (const auto good = core::read_chart_view(core::view_json(wished)); !good)
    return problem(good.error());
  bool stands = false;
  std::size_t others = 0;
  const auto seen = desk.view.read([&](const TopicView& /*view*/) {
    for (const auto& [id, view] : desk.charts.views()) {
      if (id == wished.id) stands = view.charts == wished.charts;
      others += view.owner == wished.owner && id != wished.id ? 1 : 0;
    }
  });
  if (!seen) return problem(seen.error());
  if (others >= kMostViewsOfAnOwner && !wished.charts.empty())
    return problem(core::Error{core::Code::failed_precondition,
                               "you have chosen charts for " + std::to_string(kMostViewsOfAnOwner) +
                                   " jobs, as many as are kept; an empty list gives one back"});
  if (!stands) {
    const std::vector<core::OutRecord> records{core::view_record(wished)};
    if (const auto sent = desk.writer.write(records); !sent) return problem(sent.error());
    const auto read = desk.view.await(
        [&](const TopicView& /*view*/) {
          const auto& all = desk.charts.views();
          const auto found = all.find(wished.id);
          if (wished.charts.empty()) return found == all.end();
          return found != all.end() && found->second.charts == wished.charts;
        },
        kViewReadBack);
    if (!read) return problem(read.error());
  }
  return {200, core::to_json(view_value(wished)) + "\n"};
}

constexpr std::string_view kViewSchemas =
    R"json({"ChartViewRequest":{"type":"object","properties":{"charts":{"type":"array",
   "description":"names of curves; an empty list: none are chosen any more","maxItems":100,
   "items":{"type":"string"}}},"required":["charts"],"additionalProperties":false},
 "ChartView":{"type":"object","properties":{"job":{"type":"string"},"owner":{"type":"string",
   "description":"the name of whoever asks"},"charts":{"type":"array","items":{"type":"string"}},
   "at":{"type":"string","format":"date-time","nullable":true,
   "description":"when they were chosen; null: none are"}},
   "required":["job","owner","charts","at"],"additionalProperties":false}})json";

}  // namespace

std::string_view view_schemas() noexcept { return kViewSchemas; }

std::vector<ApiRoute> view_routes(ApiDesk& desk) {
  const auto of_desk = [&desk](auto handler) {
    return [&desk, handler](const ApiCall& call) { return handler(desk, call); };
  };
  ApiParameter job{"job", ParameterType::text, "name of the job"};
  job.in_path = true;
  return {{"GET",
           "/api/v1/views/{job}",
           ApiRole::viewer,
           "Show the charts that you have chosen for a job",
           of_desk(get_view),
           {job},
           {},
           {{200, "in their order", "ChartView"}}},
          {"PUT",
           "/api/v1/views/{job}",
           ApiRole::viewer,
           "Choose charts for a job; its next run shows them to you",
           of_desk(put_view),
           {job},
           {{"ChartViewRequest"}},
           {{200, "they are kept", "ChartView"}}}};
}

}  // namespace tocsin::app
