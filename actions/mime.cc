#include "actions/mime.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "actions/redact.h"
#include "core/text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kLine = 76;
constexpr std::string_view kHex = "0123456789ABCDEF";

bool printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

}  // namespace

std::string quoted_printable(std::string_view text) {
  std::string out;
  std::size_t column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    if (c == '\n') {
      out += "\r\n";
      column = 0;
      continue;
    }
    const bool last = i + 1 == text.size() || text[i + 1] == '\n' || text[i + 1] == '\r';
    const bool blank = c == ' ' || c == '\t';
    // A dot that begins a line is encoded, so that no relay can mistake it for the end.
    const bool plain =
        (c > 0x20 && c < 0x7F && c != '=' && !(c == '.' && column == 0)) || (blank && !last);
    const std::size_t width = plain ? 1 : 3;
    if (column + width > kLine - 1) {
      out += "=\r\n";
      column = 0;
      if (c == '.') {  // it begins a line now
        out += "=2E";
        column = 3;
        continue;
      }
    }
    if (plain) {
      out += c;
    } else {
      out += '=';
      out += kHex[static_cast<unsigned char>(c) >> 4U];
      out += kHex[static_cast<unsigned char>(c) & 0xFU];
    }
    column += width;
  }
  return out;
}

std::string header_text(std::string_view text) {
  const std::string clean = printable(text, 900);
  if (printable_ascii(clean) && clean.find("=?") == std::string::npos) return clean;
  // An encoded word has at most 75 characters, and holds whole characters: 45 bytes of UTF-8.
  std::string out;
  for (std::size_t at = 0; at < clean.size();) {
    const std::string_view rest = std::string_view(clean).substr(at);
    const std::size_t size = std::max<std::size_t>(core::cut_utf8(rest, 42).size(), 1);
    out += (out.empty() ? "=?UTF-8?B?" : "\r\n =?UTF-8?B?") + base64(clean.substr(at, size)) + "?=";
    at += size;
  }
  return out;
}

std::string mail_date(core::WallTime time) {
  static constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed",
                                                    "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%s, %02u %s %04d %02d:%02d:%02d +0000",
                kDays[std::chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return out.data();
}

std::optional<Mailbox> parse_mailbox(std::string_view text) {
  Mailbox out;
  if (const std::size_t open = text.find('<'); open != std::string_view::npos) {
    if (text.empty() || text.back() != '>') return std::nullopt;
    std::string_view name = text.substr(0, open);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (name.size() > 1 && name.front() == '"' && name.back() == '"') {
      name = name.substr(1, name.size() - 2);
    }
    if (name.find_first_of("\"<>\r\n") != std::string_view::npos) return std::nullopt;
    out.name = name;
    text = text.substr(open + 1, text.size() - open - 2);
  }
  const std::size_t at = text.find('@');
  const bool shaped = at != std::string_view::npos && at > 0 && at + 1 < text.size() &&
                      text.find('@', at + 1) == std::string_view::npos && text.size() <= 254;
  const bool clean = std::all_of(text.begin(), text.end(), [](char c) {
    return c > 0x20 && c < 0x7F &&
           std::string_view("<>()[],;:\\\"").find(c) == std::string_view::npos;
  });
  if (!shaped || !clean) return std::nullopt;
  out.address = text;
  return out;
}

std::string to_header(const Mailbox& mailbox) {
  if (mailbox.name.empty()) return mailbox.address;
  const std::string name = header_text(mailbox.name);
  const bool word = name.starts_with("=?");
  return (word ? name : "\"" + name + "\"") + " <" + mailbox.address + ">";
}

}  // namespace tocsin::actions
