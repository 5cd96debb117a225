#include "actions/integration/sns_publish.h"

#include <algorithm>
#include <array>

#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

using core::OutcomeClass;

/// The text of the first element of that name; the answers are small and have no attributes there.
std::string element(const std::string& xml, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">";
  const std::size_t begin = xml.find(open);
  if (begin == std::string::npos) return {};
  const std::size_t text = begin + open.size();
  const std::size_t end = xml.find("</", text);
  return end == std::string::npos ? std::string() : xml.substr(text, end - text);
}

template <std::size_t Count>
bool among(const std::string& code, const std::array<std::string_view, Count>& codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

}  // namespace

void SnsPublish::add(std::string_view name, std::string_view value) {
  body_ += "&" + std::string(name) + "=" + percent_encode(value);
}

void SnsPublish::attribute(std::string_view name, std::string_view value) {
  if (value.empty()) return;
  const std::string entry = "MessageAttributes.entry." + std::to_string(++attributes_);
  add(entry + ".Name", name);
  add(entry + ".Value.DataType", "String");
  add(entry + ".Value.StringValue", value);
}

std::string sns_endpoint(const std::string& region) {
  return "https://sns." + region + ".amazonaws.com" + (region.starts_with("cn-") ? ".cn" : "");
}

core::AttemptOutcome classify_sns(const HttpResult& result, core::WallTime now) {
  static constexpr std::array<std::string_view, 6> kThrottled{
      "Throttling",    "ThrottledException",     "ThrottlingException",
      "KMSThrottling", "KMSThrottlingException", "RequestLimitExceeded"};
  static constexpr std::array<std::string_view, 13> kConfiguration{"AuthorizationError",
                                                                   "InvalidClientTokenId",
                                                                   "SignatureDoesNotMatch",
                                                                   "ExpiredToken",
                                                                   "IncompleteSignature",
                                                                   "InvalidSecurity",
                                                                   "NotFound",
                                                                   "MissingAuthenticationToken",
                                                                   "OptInRequired",
                                                                   "RequestExpired",
                                                                   "KMSAccessDenied",
                                                                   "KMSDisabled",
                                                                   "KMSNotFound"};
  core::AttemptOutcome out = actions::classify(result, now);
  if (result.failure != HttpFailure::none) return out;
  const std::string& body = result.response.body;
  if (out.outcome == OutcomeClass::delivered) {
    if (element(body, "MessageId").empty()) {
      out.outcome = OutcomeClass::configuration;  // somebody else answered
      out.code = "not_sns";
      out.detail = "expected a MessageId, found " + body;
    }
    return out;
  }
  const std::string code = element(body, "Code");
  if (code.empty()) return out;
  out.code = code;
  out.detail = element(body, "Message");
  const bool of_topic =
      code.starts_with("InvalidParameter") && out.detail.find("TopicArn") != std::string::npos;
  if (among(code, kThrottled)) out.outcome = OutcomeClass::throttled;
  if (among(code, kConfiguration) || of_topic) out.outcome = OutcomeClass::configuration;
  return out;
}

bool sns_number_is_dead(const HttpResponse& response) {
  const std::string code = element(response.body, "Code");
  return code == "OptedOut" ||
         (code.starts_with("InvalidParameter") &&
          element(response.body, "Message").find("PhoneNumber") != std::string::npos);
}

}  // namespace tocsin::actions
