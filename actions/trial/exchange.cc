#include "actions/trial/exchange.h"

#include <algorithm>
#include <array>

#include "actions/transport/redact.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::string_view kHidden = "<redacted>";
// Names of headers that hold a credential wherever they are used.
constexpr std::array<std::string_view, 6> kCredentialHeaders{
    "authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key", "x-auth-token"};

bool holds_credential(std::string_view header) {
  std::string name(header);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::find(kCredentialHeaders.begin(), kCredentialHeaders.end(), name) !=
         kCredentialHeaders.end();
}

core::Value headers_value(const HeaderLines& headers) {
  core::ValueMap out;
  for (const auto& [name, value] : headers) out.emplace_back(name, value);
  return out;
}

}  // namespace

ExchangeMask::ExchangeMask(std::span<const std::string> credentials)
    : credentials_(credentials.begin(), credentials.end()) {
  // One that holds another is masked first: nothing of it is left to recognise.
  std::stable_sort(credentials_.begin(), credentials_.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string ExchangeMask::line(std::string_view text) const {
  return core::visible(redact(std::string(text), credentials_));
}

std::string ExchangeMask::url(std::string_view text) const {
  const std::size_t scheme = text.find("//");
  const std::size_t path = scheme == std::string_view::npos ? 0 : text.find('/', scheme + 2);
  if (path == std::string_view::npos) return line(text);
  return line(text.substr(0, path)) + line(text.substr(path));
}

std::string ExchangeMask::lines(std::string_view text) const {
  const std::string masked = redact(std::string(text), credentials_);
  std::string out;
  for (std::size_t begin = 0; begin < masked.size();) {
    const std::size_t end = std::min(masked.find('\n', begin), masked.size());
    std::string_view one = std::string_view(masked).substr(begin, end - begin);
    if (one.ends_with('\r')) one.remove_suffix(1);
    out += core::visible(one);
    if (end < masked.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

HeaderLines ExchangeMask::headers(const HeaderLines& given) const {
  HeaderLines out;
  for (const auto& [name, value] : given) {
    std::string shown = line(value);
    if (holds_credential(name) && shown.find(kHidden) == std::string::npos) shown = kHidden;
    out.emplace_back(line(name), std::move(shown));
  }
  return out;
}

core::Value to_value(const Exchange& exchange) {
  core::Value answer;
  if (!exchange.answer.empty()) {
    answer = core::ValueMap{{"status", exchange.answer},
                            {"headers", headers_value(exchange.answer_headers)},
                            {"body", exchange.answer_body}};
  }
  return core::ValueMap{{"request", exchange.request},
                        {"headers", headers_value(exchange.request_headers)},
                        {"body", exchange.request_body},
                        {"answer", std::move(answer)}};
}

}  // namespace tocsin::actions
