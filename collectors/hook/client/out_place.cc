#include "collectors/hook/client/out_place.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>

namespace tocsin::hook {
namespace {

constexpr std::string_view kKafka = "kafka://";
constexpr std::string_view kForms = "give \"kafka://host:9092[,host:9092]\" or a directory";
constexpr int kLastPort = 65'535;

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool alpha(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port >= 1 && port <= kLastPort;
}

// "host", "host:9092", "[::1]:9092".
bool is_broker(std::string_view one, bool with_port) {
  const std::size_t colon = one.rfind(':');
  const bool port = colon != one.npos && one.back() != ']';
  const std::string_view host = port ? one.substr(0, colon) : one;
  const auto letter = [](char c) { return alnum(c) || c == '.' || c == '-' || c == '_'; };
  const bool address = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (host.empty() || (!address && !std::all_of(host.begin(), host.end(), letter))) return false;
  return port ? is_port(one.substr(colon + 1)) : !with_port;
}

bool are_brokers(std::string_view text, bool with_port = false) {
  while (true) {
    const std::string_view one = text.substr(0, text.find(','));
    if (!is_broker(one, with_port)) return false;
    if (one.size() == text.size()) return true;
    text.remove_prefix(one.size() + 1);
  }
}

// What of "///host:9092/topic" are brokers; empty: nothing.
std::string brokers_in(std::string_view text) {
  text = trimmed(text);
  text.remove_prefix(std::min(text.find_first_not_of(":/\\"), text.size()));
  text = trimmed(text.substr(0, text.find_first_of("/?# ")));
  if (const std::size_t user = text.rfind('@'); user != text.npos) text.remove_prefix(user + 1);
  return are_brokers(text) ? std::string(text) : std::string();
}

// "file" of "file:/x"; empty where no scheme stands, or one of a letter: a drive.
std::string scheme_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon < 2 || colon + 1 >= text.size() || text[colon + 1] != '/')
    return {};
  const std::string_view name = text.substr(0, colon);
  const auto letter = [](char c) { return alnum(c) || c == '+' || c == '-' || c == '.'; };
  return alpha(name.front()) && std::all_of(name.begin(), name.end(), letter) ? lower(name) : "";
}

/// Why a text is no place, and what was most likely meant.
struct Wrong {
  std::string why;
  std::string meant;
};

Wrong nothing_of(const std::string& scheme, std::string_view text) {
  if (scheme == "file") {
    std::string_view path = text.substr(text.find(':') + 1);
    while (path.starts_with("//")) path.remove_prefix(1);
    return {"an address of a file", std::string(path)};
  }
  const std::string brokers = brokers_in(text.substr(text.find(':')));
  const bool other = scheme == "s3" || scheme == "gs" || scheme == "hdfs" || scheme == "redis";
  return {"no such kind of place",
          brokers.empty() || other ? std::string() : std::string(kKafka) + brokers};
}

// Begins like "kafka://", and is not.
std::optional<Wrong> nearly_kafka(std::string_view text) {
  const std::string word = lower(text.substr(0, 5));
  if (word != "kafka" || text.size() == 5) return std::nullopt;
  const std::string_view rest = text.substr(5);
  if (text.starts_with(kKafka)) return std::nullopt;
  if (rest.front() != ':' && !rest.starts_with("//") && rest.front() != '\\') return std::nullopt;
  std::string brokers = brokers_in(rest);
  if (rest.front() == ':' && is_port(rest.substr(1)))
    brokers = std::string(text);  // a host of that name
  return Wrong{"not spelled as a place of Kafka",
               std::string(kKafka) + (brokers.empty() ? "host:9092" : brokers)};
}

std::optional<Wrong> wrong_directory(std::string_view text) {
  if (trimmed(text).empty()) return Wrong{"empty", ""};
  if (trimmed(text) != text) return Wrong{"blanks around it", std::string(trimmed(text))};
  if (text.front() == '/' || text.starts_with("./") || text.starts_with("../")) return std::nullopt;
  if (auto kafka = nearly_kafka(text)) return kafka;
  if (const std::string scheme = scheme_of(text); !scheme.empty()) return nothing_of(scheme, text);
  if (lower(text.substr(0, 5)) == "file:")
    return Wrong{"an address of a file", std::string(text.substr(5))};
  if (text.size() > 1 && alpha(text[0]) && text[1] == ':' &&
      (text.size() == 2 || text[2] == '\\' || text[2] == '/')) {
    return Wrong{"a drive, which this system does not have", ""};
  }
  if (text.starts_with("\\\\")) return Wrong{"a share of another system", ""};
  if (text == "~" || text.starts_with("~/")) {
    return Wrong{"\"~\" stands for no folder here", "the whole path"};
  }
  if (are_brokers(text, true)) {
    return Wrong{"a host and its port", std::string(kKafka) + std::string(text)};
  }
  return std::nullopt;
}

core::Error unusable(std::string_view what, std::string_view given, const Wrong& wrong,
                     std::string_view forms, bool might_be_directory) {
  std::string out = std::string(what) + " \"" + std::string(given) + "\": " + wrong.why;
  if (!wrong.meant.empty()) {
    out += wrong.meant == "the whole path" ? "; write the whole path"
                                           : "; did you mean \"" + wrong.meant + "\"?";
  }
  out += "; " + std::string(forms);
  if (might_be_directory) out += " (\"./" + std::string(given) + "\" for one of that name)";
  return core::invalid_argument(out);
}

}  // namespace

core::Result<Place> parse_place(std::string_view what, std::string_view text) {
  Place out;
  if (text.starts_with(kKafka)) {
    out.brokers = text.substr(kKafka.size());
    if (are_brokers(out.brokers)) return out;
    const std::string meant = brokers_in(out.brokers);
    return unusable(what, text,
                    {"no list of brokers", meant.empty() ? "" : std::string(kKafka) + meant},
                    kForms, false);
  }
  if (const auto wrong = wrong_directory(text)) {
    return unusable(what, text, *wrong, kForms, wrong->why == "a host and its port");
  }
  std::error_code ignored;
  out.directory = text;
  if (std::filesystem::exists(out.directory, ignored) &&
      !std::filesystem::is_directory(out.directory, ignored)) {
    return unusable(what, text, {"a file", ""}, kForms, false);
  }
  return out;
}

core::Status check_directory(std::string_view what, std::string_view text) {
  if (text.starts_with(kKafka)) {
    return unusable(what, text, {"a place of Kafka", ""}, "give a directory", false);
  }
  if (const auto wrong = wrong_directory(text)) {
    const Wrong said{wrong->why, wrong->meant.starts_with(kKafka) ? "" : wrong->meant};
    return unusable(what, text, said, "give a directory", wrong->why == "a host and its port");
  }
  return core::ok();
}

core::Status check_brokers(std::string_view what, std::string_view text) {
  if (are_brokers(text)) return core::ok();
  std::string_view rest = text;
  if (const std::size_t scheme = rest.find("://"); scheme != rest.npos) rest.remove_prefix(scheme);
  return unusable(what, text, {"no list of brokers", brokers_in(rest)},
                  "give \"host:9092[,host:9092]\"", false);
}

}  // namespace tocsin::hook
