// Amazon SNS: one Publish, to a telephone or to a topic, and what its answer means. Internal to actions.
#pragma once

#include <string>
#include <string_view>

#include "actions/transport/http_client.h"
#include "config/config.h"
#include "core/action.h"
#include "core/time.h"

namespace tocsin::actions {

/// The form of a Publish, parameter by parameter, percent-encoded.
class SnsPublish {
 public:
  void add(std::string_view name, std::string_view value);
  /// A message attribute of the type String, for filters and settings; an empty value is left out.
  void attribute(std::string_view name, std::string_view value);

  [[nodiscard]] const std::string& body() const noexcept { return body_; }
  static constexpr char kContentType[] = "application/x-www-form-urlencoded";

 private:
  std::string body_ = "Action=Publish&Version=2010-03-31";
  int attributes_ = 0;
};

/// "https://sns.eu-central-1.amazonaws.com"
std::string sns_endpoint(const std::string& region);

/// By the code of the error, where it says more than the status.
core::AttemptOutcome classify_sns(const HttpResult& result, core::WallTime now);
/// The answer says that the number is none, or that its owner wants no messages.
bool sns_number_is_dead(const HttpResponse& response);

}  // namespace tocsin::actions
