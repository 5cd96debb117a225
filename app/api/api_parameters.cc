#include <algorithm>
#include <charconv>

#include "app/api/api_route.h"
#include "core/text.h"
#include "core/time.h"
#include "core/visible_text.h"
#include "routing/routing.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostOfAParameter = 1024;

core::Error expected(const ApiParameter& parameter, const std::string& what,
                     std::string_view found) {
  return core::invalid_argument(parameter.name + ": expected " + what + ", found \"" +
                                core::visible(found, 100) + "\"");
}

core::Status check_choice(const ApiParameter& parameter, std::string_view value) {
  const auto& choices = parameter.choices;
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return core::ok();
  std::string all;
  for (const std::string& one : choices) all += (all.empty() ? "" : ", ") + one;
  const std::string near = core::nearest(std::string(value), choices);
  auto out = expected(parameter, "one of " + all, value);
  if (!near.empty()) out.message += "; did you mean \"" + near + "\"?";
  return out;
}

core::Status check_integer(const ApiParameter& parameter, std::string_view value) {
  std::int64_t number = 0;
  const char* last = value.data() + value.size();
  const auto [end, failure] = std::from_chars(value.data(), last, number);
  if (failure == std::errc{} && end == last && number >= parameter.least &&
      number <= parameter.most) {
    return core::ok();
  }
  return expected(
      parameter,
      "a number from " + std::to_string(parameter.least) + " to " + std::to_string(parameter.most),
      value);
}

core::Status check_value(const ApiParameter& parameter, const std::string& value) {
  if (value.size() > kMostOfAParameter)
    return expected(parameter, "at most 1024 characters", value);
  switch (parameter.type) {
    case ParameterType::flag:
      if (value == "true" || value == "false") return core::ok();
      return expected(parameter, "true or false", value);
    case ParameterType::integer:
      return check_integer(parameter, value);
    case ParameterType::time:
      if (core::parse_rfc3339(value)) return core::ok();
      return expected(parameter, "a time such as 2026-01-02T03:04:05Z", value);
    case ParameterType::choice:
      return check_choice(parameter, value);
    case ParameterType::matcher:
      if (const auto good = routing::Matchers::parse(value); !good)
        return good.error().in(parameter.name);
      return core::ok();
    case ParameterType::regex:  // the reader's own, with the rest of what it reads
    case ParameterType::text:
      return core::ok();
  }
  return core::ok();
}

}  // namespace

core::Status check_parameters(const ApiRoute& route, const UrlQuery& query, std::string& field) {
  std::vector<std::string_view> known;
  for (const ApiParameter& parameter : route.parameters) {
    if (!parameter.in_path) known.push_back(parameter.name);
  }
  if (const auto only = query.only(known); !only) {
    field = query.first_unknown(known);
    return only;
  }
  for (const ApiParameter& parameter : route.parameters) {
    if (parameter.in_path) continue;
    field = parameter.name;
    const auto values = query.values(parameter.name);
    if (values.size() > 1 && !parameter.repeated)
      return core::invalid_argument(parameter.name + " stands " + std::to_string(values.size()) +
                                    " times; it may stand once");
    for (const std::string& value : values) {
      if (auto good = check_value(parameter, value); !good) return good;
    }
  }
  field.clear();
  return core::ok();
}

}  // namespace tocsin::app
