#include "actions/transport/smtp_login.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tocsin::actions {
namespace {

// In the order in which they are tried. Those in front of GSSAPI and NTLM need a name and a password
// alone.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kMechanisms{{
    {"plain", "PLAIN"},
    {"login", "LOGIN"},
    {"cram-md5", "CRAM-MD5"},
    {"scram-sha-256", "SCRAM-SHA-256"},
    {"scram-sha-1", "SCRAM-SHA-1"},
    {"digest-md5", "DIGEST-MD5"},
    {"xoauth2", "XOAUTH2"},
    {"ntlm", "NTLM"},
    {"gssapi", "GSSAPI"},
}};

bool offers(std::string_view offered, std::string_view mechanism) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  while (!offered.empty()) {
    const std::size_t end = std::min(offered.find_first_of(" =\t\r\n"), offered.size());
    const std::string_view word = offered.substr(0, end);
    if (std::equal(word.begin(), word.end(), mechanism.begin(), mechanism.end(),
                   [&](char a, char b) { return upper(a) == b; })) {
      return true;
    }
    offered.remove_prefix(std::min(end + 1, offered.size()));
  }
  return false;
}

}  // namespace

std::vector<std::string> smtp_login_names() {
  std::vector<std::string> out{"auto"};
  for (const auto& [name, mechanism] : kMechanisms) out.emplace_back(name);
  return out;
}

std::vector<std::string> smtp_logins(std::string_view auth, std::string_view offered) {
  for (const auto& [name, mechanism] : kMechanisms) {
    if (name == auth) return {"AUTH=" + std::string(mechanism)};
  }
  std::vector<std::string> out;
  if (offered.empty() || offers(offered, "PLAIN")) {
    out.emplace_back("AUTH=PLAIN;AUTH=LOGIN");
  }
  for (const auto& [name, mechanism] : kMechanisms) {
    // A password is no token: XOAUTH2 is asked for by name.
    if (name == "plain" || name == "xoauth2" || !offers(offered, mechanism)) continue;
    out.push_back("AUTH=" + std::string(mechanism));
  }
  return out;
}

}  // namespace tocsin::actions
