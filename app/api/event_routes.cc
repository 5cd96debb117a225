#include "app/api/event_routes.h"

#include <algorithm>
#include <string>

#include "app/api/event_intake.h"
#include "app/serve/problem.h"
#include "app/serve/url_query.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::string_view kOneEvent = "application/cloudevents+json";
constexpr std::string_view kEvents = "application/cloudevents-batch+json";
constexpr std::string_view kAttribute = "ce-";
constexpr std::size_t kMostOfEvents = std::size_t{1} << 20;

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  return out;
}

// Binary mode: attributes are headers, the body is the data (CloudEvents, HTTP binding, 3.1).
Value event_of_headers(const HttpRequest& request, Value data) {
  ValueMap event;
  for (const auto& [name, value] : request.headers) {
    const std::string lower = lower_case(name);
    if (!lower.starts_with(kAttribute)) continue;
    const auto text = decoded_part(value);
    event.emplace_back(lower.substr(kAttribute.size()), text.value_or(std::string(value)));
  }
  event.emplace_back("datacontenttype", "application/json");
  event.emplace_back("data", std::move(data));
  return event;
}

HttpAnswer take_events(ApiDesk& desk, const ApiCall& call) {
  const HttpRequest& request = call.request;
  const std::string type = lower_case(request.header("content-type"));
  auto body = core::parse_json(request.body, kMostOfEvents);
  if (!body) return problem(body.error());
  EventIntake intake(call, desk.clock.now());
  if (type.starts_with(kEvents)) {
    const auto* events = core::as<ValueList>(*body);
    if (events == nullptr) return problem(core::invalid_argument("expected a list of events"));
    for (const Value& event : *events) intake.take(event);
  } else if (type.starts_with(kOneEvent)) {
    intake.take(*body);
  } else {
    intake.take(event_of_headers(request, std::move(*body)));
  }
  return intake.write(desk.writer, 202);
}

}  // namespace

std::vector<ApiRoute> event_routes(ApiDesk& desk) {
  return {{"POST",
           "/api/v1/events",
           ApiRole::operate,
           "Take issues as CloudEvents",
           [&desk](const ApiCall& call) { return take_events(desk, call); },
           {},
           {{"Events",
             {"application/json", "application/cloudevents+json",
              "application/cloudevents-batch+json"}}},
           {{202, "all are written"}}}};
}

}  // namespace tocsin::app
