// Credentials for an AWS service, as an integration configures them. Internal to actions.
#pragma once

#include <string>
#include <string_view>

#include "actions/integration/http_action.h"

namespace tocsin::actions {

/// The section `aws` of an integration. Immutable after `declare`.
struct AwsLogin {
  std::string region;
  config::Secret access_key_id;
  config::Secret secret_access_key;
  config::Secret session_token;

  /// Declares the keys and reports problems at their places.
  void declare(config::Reader& in);
  /// The credentials of one attempt, for HttpRequest::aws: files are read again each time, and what is
  /// read is masked in all that the attempt returns. Errors name the key: not_found, invalid_argument.
  [[nodiscard]] core::Result<AwsSigning> open(Opened& opened, std::string_view service) const;
};

}  // namespace tocsin::actions
