#include "config/hints.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/units.h"

namespace tocsin::config {
namespace {

namespace fs = std::filesystem;

// A number and what stands behind it, without blanks, in lower case.
struct Quantity {
  std::string number;
  std::string unit;
};

std::optional<Quantity> quantity_of(const Node& node) {
  if (node.kind != Node::Kind::scalar) return std::nullopt;
  const std::string& text = node.text;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  Quantity out;
  out.number.assign(text.data(), end);
  for (const char* at = end; at != text.data() + text.size(); ++at) {
    if (*at != ' ') {
      out.unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
    }
  }
  return out;
}

std::string digits_only(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

// A number was wanted and a quantity found.
std::string number_hint(const Node& node, bool whole, std::string_view help) {
  const auto found = quantity_of(node);
  if (!found || found->unit.empty()) return {};
  if (found->unit == "%" && !whole) {
    return "; write " + digits_only(std::stod(found->number) / 100);
  }
  if (core::duration_meant(node.text).empty()) return {};
  return "; this key takes a plain number without a unit: " + std::string(help);
}

}  // namespace

std::string unit_hint(const Node& node, const core::Duration&, std::string_view) {
  return node.kind == Node::Kind::scalar ? core::duration_hint(node.text) : std::string();
}

std::string unit_hint(const Node& node, const Bytes&, std::string_view) {
  const auto found = quantity_of(node);
  if (!found || found->unit.empty()) return {};
  const char size = static_cast<char>(std::toupper(static_cast<unsigned char>(found->unit[0])));
  const std::string rest = found->unit.substr(1);
  if (std::string_view("KMGT").find(size) == std::string_view::npos) return {};
  if (rest == "ib") return "; write " + found->number + size + "iB";
  if (rest == "b") return "; write " + found->number + size + "B";
  if (!rest.empty()) return {};
  return "; write " + found->number + size + "iB or " + found->number + size + "B";
}

std::string unit_hint(const Node& node, bool, std::string_view) {
  if (node.kind != Node::Kind::scalar) return {};
  std::string word;
  for (const char c : node.text) {
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (word == "yes" || word == "on" || word == "1") return "; write true";
  if (word == "no" || word == "off" || word == "0") return "; write false";
  return {};
}

std::string unit_hint(const Node& node, double, std::string_view help) {
  return number_hint(node, false, help);
}

std::string unit_hint(const Node& node, std::int64_t, std::string_view help) {
  return number_hint(node, true, help);
}

std::string exposure(const Node& node, bool file) {
  // An address by itself is seldom a credential, though some carry one in their path.
  if (!file && (node.substituted || node.text.find("://") != std::string::npos)) return {};
  const std::string& path = file ? node.text : node.location.file;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (!file) return {};  // the text came from no file
    return "no file " + path + ": every use of this secret fails until it exists";
  }
  if (file && fs::is_directory(status)) {
    return path + " is a folder: every use of this secret fails";
  }
  if (file && fs::is_regular_file(status) && !std::ifstream(path)) {
    return path +
           " is not readable by the user who runs this check: as this user every use of it fails";
  }
  if ((status.permissions() & fs::perms::others_read) == fs::perms::none) return {};
  if (file) return "every user on this machine can read " + path + "; fix it with chmod 600";
  return "a credential in a file that every user on this machine can read; chmod 600 " + path +
         ", or name a file that holds it, or a variable ${NAME}";
}

}  // namespace tocsin::config
