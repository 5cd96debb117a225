#include "actions/transport/proxy.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tocsin::actions {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Host and port of "host", "host:port", "[v6]:port", "v6".
void read_authority(std::string_view text, UrlParts& out) {
  if (text.starts_with('[')) {
    const std::size_t end = std::min(text.find(']'), text.size());
    out.host = lower(text.substr(1, end - 1));
    if (end + 2 < text.size()) out.port = text.substr(end + 2);
    return;
  }
  const bool v6 = std::count(text.begin(), text.end(), ':') > 1;
  const std::size_t colon = v6 ? std::string_view::npos : text.find(':');
  out.host = lower(text.substr(0, colon));
  if (colon != std::string_view::npos) out.port = text.substr(colon + 1);
}

bool is_network_with(std::string_view network, const std::string& host) {
  const auto address = parse_address(host);
  if (!address || network.find('/') == std::string_view::npos) return false;
  const auto base = parse_address(network.substr(0, network.find('/')));
  if (!base) return false;
  const bool v6 = network.find(':') != std::string_view::npos;
  const std::string bits_text(network.substr(network.find('/') + 1));
  if (bits_text.empty() || bits_text.size() > 3 ||
      bits_text.find_first_not_of("0123456789") != std::string::npos) {
    return false;
  }
  const int bits = std::stoi(bits_text) + (v6 ? 0 : 96);
  for (int bit = 0; bit < std::min(bits, 128); ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const auto mask = static_cast<std::uint8_t>(0x80U >> static_cast<unsigned>(bit % 8));
    if (((*address)[byte] & mask) != ((*base)[byte] & mask)) return false;
  }
  return true;
}

bool entry_names(std::string_view entry, const UrlParts& target) {
  if (entry == "*") return true;
  if (is_network_with(entry, target.host)) return true;
  UrlParts wanted;
  read_authority(entry, wanted);
  std::string_view name = wanted.host;
  if (name.starts_with("*.")) name.remove_prefix(1);
  if (name.starts_with('.')) name.remove_prefix(1);
  if (name.empty() || (!wanted.port.empty() && wanted.port != target.port)) return false;
  if (target.host == name) return true;
  return target.host.size() > name.size() && target.host.ends_with(name) &&
         target.host[target.host.size() - name.size() - 1] == '.';
}

}  // namespace

UrlParts url_parts(std::string_view url) {
  UrlParts out;
  const std::size_t slashes = url.find("://");
  if (slashes == std::string_view::npos || slashes == 0) return out;
  out.scheme = lower(url.substr(0, slashes));
  url.remove_prefix(slashes + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  if (const auto at = url.rfind('@'); at != std::string_view::npos) {
    out.user = url.substr(0, at);
    url.remove_prefix(at + 1);
  }
  read_authority(url, out);
  if (out.port.empty()) out.port = out.scheme == "https" ? "443" : out.scheme == "http" ? "80" : "";
  return out;
}

bool in_no_proxy(std::string_view list, const UrlParts& target) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find_first_of(", "), list.size());
    const std::string_view entry = trimmed(list.substr(0, comma));
    if (!entry.empty() && entry_names(entry, target)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::string proxy_for(std::string_view url, std::string_view wanted,
                      const ProxyEnvironment& environment) {
  if (wanted == kNoProxy) return {};
  if (!wanted.empty() && wanted != kProxyFromEnvironment) return std::string(wanted);
  const UrlParts target = url_parts(url);
  const std::string& own = target.scheme == "https" ? environment.https : environment.http;
  const std::string& named = own.empty() ? environment.all : own;
  if (named.empty() || in_no_proxy(environment.none, target)) return {};
  return named.find("://") == std::string::npos ? "http://" + named : named;
}

std::string proxy_problem(std::string_view proxy) {
  if (proxy == kProxyFromEnvironment || proxy == kNoProxy) return {};
  const UrlParts parts = url_parts(proxy);
  static constexpr std::array<std::string_view, 4> kSchemes{"http", "https", "socks5", "socks5h"};
  const bool known = std::find(kSchemes.begin(), kSchemes.end(), parts.scheme) != kSchemes.end();
  if (!known || parts.host.empty() || proxy.find_first_of(" \t\r\n") != std::string_view::npos) {
    return "expected environment, none, or a URL such as http://proxy.example:3128 (also https, "
           "socks5, socks5h)";
  }
  return {};
}

std::string proxied_host_problem(std::string_view url, const AddressGuard& guard) {
  const std::string host = url_parts(url).host;
  const bool local = host == "localhost" || host.ends_with(".localhost");
  if (local && !guard.allows(*parse_address("127.0.0.1"))) {
    return "a proxy may not be asked for " + host +
           "; name 127.0.0.0/8 in allow_private, or set proxy: none";
  }
  if (host == "metadata.google.internal" || host == "metadata") {
    return "a proxy may not be asked for " + host + ", a metadata service";
  }
  if (const auto address = parse_address(host); address && !guard.allows(*address)) {
    return "the address " + host + " is not public; name its network in allow_private";
  }
  return {};
}

}  // namespace tocsin::actions
