#include "actions/transport/mime.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "actions/transport/redact.h"
#include "core/text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kLine = 76;
constexpr std::string_view kHex = "0123456789ABCDEF";

bool printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

/// A word of a header and the blanks in front of it. Both lie in the text.
struct HeaderWord {
  std::string_view gap, text;
};

std::vector<HeaderWord> header_words(std::string_view text) {
  std::vector<HeaderWord> out;
  while (true) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return out;
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    out.push_back(
        {text.substr(0, std::min<std::size_t>(begin, 2)), text.substr(begin, end - begin)});
    text.remove_prefix(end);
  }
}

/// Such words need no encoding, and fit into a line.
bool stays(std::string_view word) {
  return word.size() <= 60 && printable_ascii(word) && word.find("=?") == std::string_view::npos;
}

/// A header's text over lines of at most 76 characters, each further one behind a blank (RFC 5322
/// §2.2.3, RFC 2047 §2).
class FoldedLine {
 public:
  explicit FoldedLine(std::size_t column) : column_(column) {}

  void put(std::string_view gap, std::string_view word) {
    if (out_.empty()) gap = {};
    if (!gap.empty() && column_ + gap.size() + word.size() > kLine) fold();
    append(gap);
    append(word);
  }
  /// Words of at most 75 characters that hold whole characters.
  void put_encoded(std::string_view gap, std::string_view text) {
    if (!out_.empty()) put_gap(gap);
    while (true) {
      if (room() < kLeast) put_gap(" ");
      const std::size_t most = (std::min(room(), kWord) - kFrame) / 4 * 3;
      const std::string_view part = core::cut_utf8(text, most);
      append("=?UTF-8?B?" + base64(part) + "?=");
      text.remove_prefix(part.size());
      if (text.empty()) return;
      put_gap(" ");
    }
  }
  std::string take() { return std::move(out_); }

 private:
  static constexpr std::size_t kWord = 75;
  static constexpr std::size_t kFrame = 12;          // "=?UTF-8?B?" and "?="
  static constexpr std::size_t kLeast = kFrame + 8;  // one character of any size

  [[nodiscard]] std::size_t room() const { return column_ < kLine ? kLine - column_ : 0; }
  void put_gap(std::string_view gap) {
    if (room() < gap.size() + kLeast) fold();
    append(gap);
  }
  void fold() {
    out_ += "\r\n";
    column_ = 0;
  }
  void append(std::string_view text) {
    out_ += text;
    column_ += text.size();
  }

  std::string out_;
  std::size_t column_;
};

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

std::string header_text(std::string_view text, std::size_t column) {
  const std::string clean = printable(text, 900);
  const std::vector<HeaderWord> words = header_words(clean);
  const auto odd = [](const HeaderWord& word) { return !stays(word.text); };
  const auto first = std::find_if(words.begin(), words.end(), odd);
  const auto last = std::find_if(words.rbegin(), words.rend(), odd).base();
  FoldedLine line(column);
  for (auto at = words.begin(); at != words.end();) {
    if (at != first) {
      line.put(at->gap, at->text);
      ++at;
      continue;
    }
    // One run from the first word to be encoded to the last: blanks between two encoded words would
    // be lost.
    const char* begin = at->text.data();
    const char* end = (last - 1)->text.data() + (last - 1)->text.size();
    line.put_encoded(at->gap, {begin, static_cast<std::size_t>(end - begin)});
    at = last;
  }
  return line.take();
}

std::string mail_date(core::WallTime time) {
  static constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed",
                                                    "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto [day, passed] = core::day_and_clock(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(passed));
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

std::string to_header(const Mailbox& mailbox, std::size_t column) {
  if (mailbox.name.empty()) return mailbox.address;
  const std::string name = header_text(mailbox.name, column + 1);
  const bool encoded = name.find("=?") != std::string::npos;
  std::string out = encoded ? header_text(mailbox.name, column) : "\"" + name + "\"";
  const std::size_t line = out.rfind('\n');
  const std::size_t used = line == std::string::npos ? column + out.size() : out.size() - line - 1;
  const bool fits = used + mailbox.address.size() + 3 <= kLine;
  return out + (fits ? " <" : "\r\n <") + mailbox.address + ">";
}

}  // namespace tocsin::actions
