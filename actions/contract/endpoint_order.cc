#include "actions/contract/endpoint_order.h"

#include <array>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/text.h"
#include "core/topics.h"
#include "core/value.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMaxOrder = 16 * 1024;
constexpr std::string_view kSwitch = "endpoint/";
constexpr std::string_view kMoment = "breaker/";

constexpr std::array kDeeds{EndpointDeed::disable, EndpointDeed::enable, EndpointDeed::reset,
                            EndpointDeed::probe};

core::Error unknown_deed(const std::string& given) {
  std::vector<std::string> known;
  std::string expected;
  for (const EndpointDeed deed : kDeeds) {
    known.emplace_back(to_string(deed));
    expected += (expected.empty() ? "" : ", ") + known.back();
  }
  const std::string near = core::nearest(given, known);
  return core::invalid_argument("do: expected one of " + expected + ", not \"" +
                                core::visible(given, 100) + "\"" +
                                (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace

std::string_view to_string(EndpointDeed deed) noexcept {
  switch (deed) {
    case EndpointDeed::disable:
      return "disable";
    case EndpointDeed::enable:
      return "enable";
    case EndpointDeed::reset:
      return "reset";
    case EndpointDeed::probe:
      return "probe";
  }
  return "enable";
}

bool is_endpoint_key(std::string_view key) noexcept {
  return key.starts_with(kSwitch) || key.starts_with(kMoment);
}

core::OutRecord endpoint_record(const EndpointOrder& order) {
  core::OutRecord out;
  out.topic = core::topic::kRouterControl;
  out.key = std::string(order.lasts() ? kSwitch : kMoment) + order.integration;
  out.value = core::to_json(core::ValueMap{{"do", std::string(to_string(order.deed))},
                                           {"by", order.by},
                                           {"at", core::to_rfc3339(order.at)},
                                           {"comment", order.comment}});
  out.partition = 0;
  return out;
}

core::Result<EndpointOrder> read_endpoint_order(std::string_view key,
                                                std::optional<std::string_view> value) {
  if (!is_endpoint_key(key)) return core::invalid_argument("no key of an integration");
  EndpointOrder out;
  out.integration = std::string(key.substr(key.find('/') + 1));
  if (!value) return out;
  const auto read = core::parse_json(*value, kMaxOrder);
  if (!read) return read.error();
  const std::string deed = core::text_at(*read, "do");
  bool known = false;
  for (const EndpointDeed one : kDeeds) {
    if (deed != to_string(one)) continue;
    out.deed = one;
    known = true;
  }
  if (!known) return unknown_deed(deed);
  if (out.lasts() != key.starts_with(kSwitch)) {
    return core::invalid_argument("do: " + deed + " does not belong to the key " +
                                  std::string(key.substr(0, key.find('/') + 1)));
  }
  out.by = core::text_at(*read, "by");
  out.comment = core::text_at(*read, "comment");
  if (const auto at = core::parse_rfc3339(core::text_at(*read, "at"))) out.at = *at;
  return out;
}

}  // namespace tocsin::actions
