#include "actions/integration/aws_login.h"

#include <algorithm>

namespace tocsin::actions {
namespace {

/// A region is part of a host name and of the signature's scope.
bool is_aws_region(const std::string& text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

void AwsLogin::declare(config::Reader& in) {
  in.section("aws", "the account", [&](config::Reader& aws) {
    aws.required("region", region, config::not_empty(), "region of the service, eu-central-1");
    if (aws.has("region") && !is_aws_region(region)) {
      aws.error("region", "expected a region such as eu-central-1");
    }
    aws.secret("access_key_id", access_key_id, "access key", true);
    aws.secret("secret_access_key", secret_access_key, "its secret", true);
    aws.secret("session_token", session_token, "with temporary credentials");
  });
}

core::Result<AwsSigning> AwsLogin::open(Opened& opened, std::string_view service) const {
  AwsSigning out;
  out.region = region;
  out.service = service;
  const auto key = opened.reveal(access_key_id, "aws.access_key_id");
  if (!key) return key.error();
  const auto secret = opened.reveal(secret_access_key, "aws.secret_access_key");
  if (!secret) return secret.error();
  out.access_key_id = *key;
  out.secret_access_key = *secret;
  if (session_token.set()) {
    const auto token = opened.reveal(session_token, "aws.session_token");
    if (!token) return token.error();
    out.session_token = *token;
  }
  return out;
}

}  // namespace tocsin::actions
