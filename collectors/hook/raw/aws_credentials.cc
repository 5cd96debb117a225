#include "collectors/hook/raw/aws_credentials.h"

#include <fstream>
#include <iterator>

namespace tocsin::hook {
namespace {

constexpr std::size_t kMostCredentials = 1 << 20;  // bytes of a file

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

AwsCredentials aws_profile(std::string_view text, std::string_view profile) {
  AwsCredentials out;
  bool here = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      here = line.back() == ']' && trimmed(line.substr(1, line.size() - 2)) == profile;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!here || equals == std::string_view::npos) continue;
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string value(trimmed(line.substr(equals + 1)));
    if (name == "aws_access_key_id") out.key = value;
    if (name == "aws_secret_access_key") out.secret = value;
    if (name == "aws_session_token") out.token = value;
  }
  return out;
}

core::Result<AwsCredentials> aws_credentials(const config::Environment& environment) {
  const auto variable = [&](const char* name) { return environment(name).value_or(""); };
  AwsCredentials out{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"),
                     variable("AWS_SESSION_TOKEN")};
  if (!out.key.empty() && !out.secret.empty()) return out;
  std::string path = variable("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) path = variable("HOME") + "/.aws/credentials";
  std::string profile = variable("AWS_PROFILE");
  if (profile.empty()) profile = "default";
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) text.assign(std::istreambuf_iterator<char>(file), {});
  if (text.size() <= kMostCredentials) out = aws_profile(text, profile);
  if (!out.key.empty() && !out.secret.empty()) return out;
  return core::Error{core::Code::permission_denied,
                     "no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor the "
                     "profile " +
                         profile + " of " + path};
}

}  // namespace tocsin::hook
