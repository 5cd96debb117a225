#include "app/config/file_check.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

bool ends_in_any(std::string_view key, std::initializer_list<std::string_view> ends) {
  for (const std::string_view end : ends) {
    if (key.ends_with(end)) return true;
  }
  return false;
}

// Of ours, and of librdkafka: ssl.ca.location and its kin.
bool names_a_file(std::string_view key) {
  return ends_in_any(key, {"ca_file", "cert_file", "key_file"}) ||
         (key.starts_with("ssl.") && key.ends_with(".location"));
}

std::string trouble(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return "no file " + path + ": every connection fails until it exists";
  }
  if (fs::is_directory(status)) return "";  // librdkafka takes folders of certificates
  if (!std::ifstream(path)) {
    return path +
           " is not readable by the user who runs this check: as this user every connection fails";
  }
  return "";
}

void walk(const config::Reader& root, const std::string& path, const core::Value& value) {
  if (const auto* list = core::as<core::ValueList>(value)) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      walk(root, path + "[" + std::to_string(i) + "]", (*list)[i]);
    }
    return;
  }
  const auto* map = core::as<core::ValueMap>(value);
  if (map == nullptr) return;
  for (const auto& [key, inner] : *map) {
    const std::string place = path + "." + key;
    const auto* text = core::as<std::string>(inner);
    if (text == nullptr) {
      walk(root, place, inner);
    } else if (names_a_file(key) && !text->empty()) {
      if (std::string why = trouble(*text); !why.empty()) root.warning(place, std::move(why));
    }
  }
}

void check_mail_hosts(const config::Reader& root, const AppConfig& config) {
  for (const auto& action : config.receivers.integrations) {
    if (action.type != "email" || !action.common.enabled) continue;
    const std::string receiver = "receivers." + action.receiver;
    std::string place = receiver + "[" + std::to_string(action.index) + "].email";
    if (!root.value(place)) place = receiver + ".email";
    if (!root.value(place) || root.value(place + ".host")) continue;
    root.warning(place,
                 "no `host`: mail is handed to localhost; name your SMTP server, or write `host: "
                 "localhost` if one runs here");
  }
}

}  // namespace

void check_files(const config::Reader& root, const AppConfig& config) {
  for (const char* section : {"transport", "receivers", "http"}) {
    if (const auto value = root.value(section)) walk(root, section, *value);
  }
  check_mail_hosts(root, config);
}

}  // namespace tocsin::app
