// Who signs requests to an S3-compatible store: from the standard environment, or the standard file.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"
#include "core/result.h"

namespace tocsin::hook {

/// Never logged, never in counters, never on a topic.
struct AwsCredentials {
  std::string key;
  std::string secret;
  std::string token;  // of a session; empty: none
};

/// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), else the profile AWS_PROFILE
/// (`default`) of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Error: permission_denied, with
/// where they were looked for and without what was found.
core::Result<AwsCredentials> aws_credentials(const config::Environment& environment);

/// The profile's keys in the text of such a file; empty ones where they are not.
AwsCredentials aws_profile(std::string_view text, std::string_view profile);

}  // namespace tocsin::hook
