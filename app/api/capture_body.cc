#include "app/api/capture_body.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/text.h"
#include "core/value.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;

constexpr std::size_t kMostOfACaptureBody = 64 * 1024;
constexpr std::size_t kMostNames = 64;
constexpr std::size_t kMostOfAName = 200;
constexpr std::size_t kMostOfACaptureReason = 2000;
constexpr std::int64_t kMostCaptureSteps = 1'000'000'000;
constexpr std::int64_t kMostRanks = 1'000'000;

/// Empty: the value was taken. Else what was expected.
using Expected = std::string;
using Take = std::function<Expected(const Value&)>;
using Fields = std::map<std::string, Take>;

Take whole(std::int64_t least, std::int64_t most, std::function<void(std::int64_t)> take) {
  return [=, take = std::move(take)](const Value& value) -> Expected {
    const auto* number = core::as<std::int64_t>(value);
    if (number == nullptr || *number < least || *number > most) {
      return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    }
    take(*number);
    return {};
  };
}

Take flag(bool& out) {
  return [&out](const Value& value) -> Expected {
    const auto* is = core::as<bool>(value);
    if (is == nullptr) return "true or false";
    out = *is;
    return {};
  };
}

Take names(std::vector<std::string>& out) {
  return [&out](const Value& value) -> Expected {
    const std::string expected = "a list of at most " + std::to_string(kMostNames) + " names";
    const auto* list = core::as<ValueList>(value);
    if (list == nullptr || list->size() > kMostNames) return expected;
    for (const Value& one : *list) {
      const auto* name = core::as<std::string>(one);
      if (name == nullptr || name->empty() || name->size() > kMostOfAName) return expected;
      out.push_back(*name);
    }
    return {};
  };
}

Take rank_numbers(std::vector<std::uint32_t>& out) {
  return [&out](const Value& value) -> Expected {
    const auto* list = core::as<ValueList>(value);
    if (list == nullptr || list->size() > CaptureOrder::kMostRanksNamed)
      return "a list of at most " + std::to_string(CaptureOrder::kMostRanksNamed) + " ranks";
    for (const Value& one : *list) {
      const auto* rank = core::as<std::int64_t>(one);
      if (rank == nullptr || *rank < 0 || *rank > kMostRanks) return "a list of ranks, from 0 on";
      out.push_back(static_cast<std::uint32_t>(*rank));
    }
    return {};
  };
}

/// What both bodies have.
Fields common_fields(CaptureBody& out, std::int64_t most_steps) {
  CaptureOrder& order = out.order;
  Fields fields;
  fields["attempt"] = whole(1, UINT32_MAX, [&out](std::int64_t number) {
    out.attempt = static_cast<std::uint32_t>(number);
  });
  fields["from_step"] =
      whole(0, kMostCaptureSteps, [&order](std::int64_t step) { order.from = step; });
  fields["steps"] = whole(1, most_steps, [&order](std::int64_t steps) { order.steps = steps; });
  fields["ranks"] = rank_numbers(order.ranks);
  fields["reason"] = [&order](const Value& value) -> Expected {
    const auto* text = core::as<std::string>(value);
    if (text == nullptr || text->size() > kMostOfACaptureReason)
      return "a text of at most 2000 bytes";
    order.reason = *text;
    return {};
  };
  return fields;
}

core::Status take_fields(std::string_view json, const Fields& fields) {
  const auto body = core::parse_json(json, kMostOfACaptureBody);
  if (!body) return body.error();
  const auto* members = core::as<core::ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  for (const auto& [name, value] : *members) {
    const auto field = fields.find(name);
    if (field == fields.end()) {
      std::vector<std::string> known;
      for (const auto& one : fields) known.push_back(one.first);
      const std::string near = core::nearest(name, known);
      return core::invalid_argument("unknown field \"" + core::visible(name, 100) + "\"" +
                                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    if (value.is_null()) continue;
    if (const Expected expected = field->second(value); !expected.empty())
      return core::invalid_argument(name + ": expected " + expected);
  }
  return core::ok();
}

}  // namespace

core::Result<CaptureBody> read_capture_body(std::string_view json) {
  CaptureBody out;
  bool pause = false;
  bool resume = false;
  bool end = false;
  CaptureOrder& order = out.order;
  Fields fields = common_fields(out, kMostCaptureSteps);
  fields["collections"] = names(order.collections);
  fields["statistics"] = names(order.statistics);
  fields["raw"] = flag(order.raw);
  fields["every"] =
      whole(1, kMostCaptureSteps, [&order](std::int64_t steps) { order.every = steps; });
  fields["pause"] = flag(pause);
  fields["resume"] = flag(resume);
  fields["end"] = flag(end);
  if (const auto taken = take_fields(json, fields); !taken) return taken.error();
  const int asked = int{!order.collections.empty()} + int{pause} + int{resume} + int{end};
  if (asked != 1)
    return core::invalid_argument("expected one of collections, pause, resume and end");
  if (pause || resume) order.kind = CaptureOrder::Kind::pause;
  if (order.kind == CaptureOrder::Kind::more && order.steps == 0) order.steps = 1;
  out.takes_back = resume || end;
  return out;
}

core::Result<CaptureBody> read_profile_body(std::string_view json) {
  CaptureBody out;
  std::string kind;
  Fields fields = common_fields(out, CaptureOrder::kMostOfATrace);
  fields["kind"] = [&kind](const Value& value) -> Expected {
    const auto* text = core::as<std::string>(value);
    if (text == nullptr || (*text != "trace" && *text != "stacks")) return "trace or stacks";
    kind = *text;
    return {};
  };
  if (const auto taken = take_fields(json, fields); !taken) return taken.error();
  CaptureOrder& order = out.order;
  order.kind = kind == "stacks" ? CaptureOrder::Kind::stacks : CaptureOrder::Kind::trace;
  if (order.kind == CaptureOrder::Kind::stacks && (order.from || order.steps > 0))
    return core::invalid_argument(
        "from_step, steps: they belong to a trace; stacks are told at once");
  if (order.steps == 0) order.steps = 1;
  return out;
}

}  // namespace tocsin::app
