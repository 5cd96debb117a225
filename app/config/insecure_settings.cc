#include "app/config/insecure_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "app/serve/access.h"
#include "core/json.h"
#include "core/value.h"

namespace tocsin::app {
namespace {

struct InsecureKind {
  const char* name;
  const char* what;
};
constexpr InsecureKind kUnchecked{"kafka_certificate_unchecked",
                                  "the certificate or the name of the broker is not checked"};
constexpr InsecureKind kKafkaClear{"kafka_password_in_clear",
                                   "the password for the broker travels in clear"};
constexpr InsecureKind kMailClear{"mail_in_clear", "mails may travel in clear"};
constexpr InsecureKind kReceiverClear{"receiver_in_clear",
                                      "messages and credentials travel in clear"};
constexpr InsecureKind kHttpClear{"http_in_clear",
                                  "the API listens for other machines, and answers in clear"};
constexpr std::array kInsecureKinds{kUnchecked, kKafkaClear, kMailClear, kReceiverClear,
                                    kHttpClear};

class InsecureSearch {
 public:
  std::vector<InsecureSetting> take() { return std::move(found_); }

  void kafka(const core::Value& settings) {
    const auto* map = core::as<core::ValueMap>(settings);
    if (map == nullptr) return;
    for (const auto& [key, value] : *map) {
      const std::string place = "transport.kafka." + key;
      const std::string text = lower(value);
      if (key == "enable.ssl.certificate.verification" && text == "false") add(kUnchecked, place);
      if (key == "ssl.endpoint.identification.algorithm" && text == "none") add(kUnchecked, place);
      if (key == "security.protocol" && text == "sasl_plaintext") add(kKafkaClear, place);
    }
  }

  void receivers(const core::Value& value, const std::string& place, std::string_view key) {
    if (const auto* map = core::as<core::ValueMap>(value)) {
      for (const auto& [name, inner] : *map) {
        std::string where = place;
        where += '.';
        where += name;
        receivers(inner, where, name);
      }
    } else if (const auto* list = core::as<core::ValueList>(value)) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        receivers((*list)[i], place + "[" + std::to_string(i) + "]", key);
      }
    } else if (key == "tls") {
      const std::string text = lower(value);
      if (text == "none" || text == "starttls_opportunistic") add(kMailClear, place);
    } else if (key == "url" || key == "proxy") {
      if (in_clear(lower(value))) add(kReceiverClear, place);
    }
  }

  void http(const HttpConfig& config) {
    if (!config.tls && !listens_on_loopback(config.listen)) add(kHttpClear, "http.listen");
  }

 private:
  void add(const InsecureKind& kind, std::string place) {
    found_.push_back({kind.name, std::move(place), kind.what});
  }

  static std::string lower(const core::Value& value) {
    if (const auto* flag = core::as<bool>(value)) return *flag ? "true" : "false";
    const auto* text = core::as<std::string>(value);
    std::string out = text == nullptr ? "" : *text;
    for (char& one : out) one = static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
    return out;
  }

  // An address of this machine does not leave it.
  static bool in_clear(std::string_view url) {
    constexpr std::string_view kScheme = "http://";
    if (!url.starts_with(kScheme)) return false;
    std::string_view host = url.substr(kScheme.size());
    host = host.substr(0, host.find_first_of("/?#"));
    if (const auto port = host.rfind(':'); port != std::string_view::npos && !host.ends_with(']')) {
      host = host.substr(0, port);
    }
    const bool numbers = host.find_first_not_of("0123456789.") == std::string_view::npos;
    return host != "localhost" && host != "[::1]" && !(numbers && host.starts_with("127."));
  }

  std::vector<InsecureSetting> found_;
};

}  // namespace

std::vector<InsecureSetting> insecure_settings(const AppConfig& config) {
  InsecureSearch search;
  search.kafka(config.transport.kafka);
  constexpr std::size_t kMostOfReceivers = 64UL << 20U;
  if (const auto section = config.sections.find("receivers"); section != config.sections.end()) {
    if (const auto value = core::parse_json(section->second, kMostOfReceivers)) {
      search.receivers(*value, "receivers", "");
    }
  }
  search.http(config.http);
  return search.take();
}

void count_insecure_settings(const AppConfig& config, core::Telemetry& telemetry) {
  const std::vector<InsecureSetting> found = insecure_settings(config);
  for (const InsecureKind& kind : kInsecureKinds) {
    const auto number = std::count_if(found.begin(), found.end(),
                                      [&](const auto& one) { return one.kind == kind.name; });
    telemetry
        .gauge("tocsin_insecure_settings", "settings that give up a protection, by what they do",
               {{"setting", kind.name}})
        .set(static_cast<double>(number));
  }
}

}  // namespace tocsin::app
